"""Hosts as the journeys start them."""

from __future__ import annotations

from tests.journeys.fixtures import ask, emptied, pytest_runtest_makereport

__all__ = ["ask", "emptied", "pytest_runtest_makereport"]
