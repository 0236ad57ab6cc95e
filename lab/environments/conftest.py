"""A host at default settings; workers of other environments are started beside it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import ROOT
from tests.journeys.fixtures import ask, emptied, pytest_runtest_makereport
from tests.journeys.hosts import Host, host

__all__ = ["MADE", "ask", "emptied", "pytest_runtest_makereport", "site"]

#: The environments of frameworks that `make lab-frameworks` has made; without any there is nothing to test.
MADE = sorted(path.parent.name for path in (ROOT / "var" / "frameworks").glob("*/.made"))
collect_ignore = [] if MADE else ["test_frameworks.py"]


@pytest.fixture(scope="package")
def site(emptied: None) -> Iterator[Host]:
    """A host that polls: what a hint did not tell within a second is found."""
    with host() as running:
        yield running
