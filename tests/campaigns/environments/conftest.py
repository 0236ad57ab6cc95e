"""The host of the journeys; workers of other environments are started beside it."""

from __future__ import annotations

from tests import ROOT
from tests.journeys.fixtures import ask, emptied, pytest_runtest_makereport, site

__all__ = ["MADE", "ask", "emptied", "pytest_runtest_makereport", "site"]

#: The environments of frameworks that `make frameworks` has made; without any there is nothing to test.
MADE = sorted(path.parent.name for path in (ROOT / "var" / "frameworks").glob("*/.made"))
collect_ignore = [] if MADE else ["test_frameworks.py"]
