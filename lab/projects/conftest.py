"""The projects."""

from tests.journeys.fixtures import pytest_runtest_makereport

__all__ = ["pytest_runtest_makereport"]
