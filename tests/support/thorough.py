"""What only `make test-all` runs, which says TEST_THOROUGH: all examples of Hypothesis, and tests marked `thorough`."""

from __future__ import annotations

import os
from typing import Any

import pytest

__all__ = ["THOROUGH", "examples", "thorough"]

THOROUGH = bool(os.environ.get("TEST_THOROUGH"))


def examples(count: int, *, quick: int) -> int:
    """So many; in a run that is to be over soon, fewer."""
    return count if THOROUGH else quick


def thorough(*values: Any) -> Any:
    """Values of `pytest.mark.parametrize` for `make test-all` alone: others show the same in `make test`."""
    return pytest.param(*values, marks=pytest.mark.thorough)
