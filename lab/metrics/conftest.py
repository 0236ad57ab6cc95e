"""One host for all faults: each is repaired before the next one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from lab.metrics.lab import Lab
from tests.journeys.fixtures import emptied, pytest_runtest_makereport

__all__ = ["emptied", "lab", "pytest_runtest_makereport"]


@pytest.fixture(scope="package")
def lab(emptied: None) -> Iterator[Lab]:
    """The host, its clients and Prometheus."""
    with ExitStack() as running:
        yield Lab(running)
