"""The host of the journeys; workers of other environments are started beside it."""

from __future__ import annotations

from tests.journeys.fixtures import ask, emptied, pytest_runtest_makereport, site

__all__ = ["ask", "emptied", "pytest_runtest_makereport", "site"]
