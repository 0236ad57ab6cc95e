"""One host for all stories that do not harm it, and workers for those that do. Both are started when they are asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connections
from pytest_django.plugin import DjangoDbBlocker

from tests.journeys.fixtures import (
    ask,
    emptied,
    pytest_runtest_makereport,
    site,
    traces,
    workers,
)
from tests.support import people

__all__ = ["ask", "emptied", "operator", "pytest_runtest_makereport", "site", "traces", "workers"]
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the first story time for the start of the host."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.timeout(300), append=False)


@pytest.fixture(scope="package")
def operator(emptied: None, django_db_blocker: DjangoDbBlocker) -> people.Person:
    """A superuser, who has not signed in yet."""
    with django_db_blocker.unblock():
        try:
            return people.operator("operator")
        finally:
            connections.close_all()
