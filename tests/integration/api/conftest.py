"""What is known of callers, of the ways in, and of what ended is known anew in each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from a2a_tasks.access import callers, grants
from a2a_tasks.operations import figures


@pytest.fixture(autouse=True)
def _unknown() -> Iterator[None]:
    callers.forget()
    grants.forget()
    figures.forget()
    yield
    callers.forget()
    grants.forget()
    figures.forget()
