"""What is known of callers, of the ways in, and of what ended is known anew in each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from a2a_console.statistics import reports
from a2a_tasks.access import authentication, grants


@pytest.fixture(autouse=True)
def _unknown() -> Iterator[None]:
    authentication.forget()
    grants.forget()
    reports.forget()
    yield
    authentication.forget()
    grants.forget()
    reports.forget()
