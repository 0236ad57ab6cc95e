"""How many examples a test makes up: `make test-all` says TEST_THOROUGH, and has all of them."""

from __future__ import annotations

import os

__all__ = ["examples"]


def examples(count: int, *, quick: int) -> int:
    """So many; in a run that is to be over soon, fewer."""
    return count if os.environ.get("TEST_THOROUGH") else quick
