"""What is known of callers, and of the ways in, is known anew in each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from a2a_tasks.access import callers


@pytest.fixture(autouse=True)
def _unknown() -> Iterator[None]:
    callers.forget()
    yield
    callers.forget()
