"""The host of the journeys, and workers beside it that may be hurt."""

from __future__ import annotations

from tests.journeys.fixtures import ask, emptied, pytest_runtest_makereport, site, traces, workers

__all__ = ["ask", "emptied", "pytest_runtest_makereport", "site", "traces", "workers"]
