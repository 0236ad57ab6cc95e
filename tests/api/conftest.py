"""What is known of callers, and of the ways in, is known anew in each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from a2a_tasks.access import callers, grants


@pytest.fixture(autouse=True)
def _unknown() -> Iterator[None]:
    callers.forget()
    grants.forget()
    yield
    callers.forget()
    grants.forget()
