"""Journeys run against real processes on this run's database, and leave it empty."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest
from django.core.management import call_command
from django.db import connections
from pytest_django.plugin import DjangoDbBlocker

from tests.journeys.hosts import RUNNING


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the logs of the processes with a failure."""
    report = yield
    if report.failed:
        report.sections += [(f"log of {name}", child.log) for name, child in RUNNING.items()]
    return report


@pytest.fixture(scope="module", autouse=True)
def emptied(database: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Empty the tables when the processes of a module have ended: other tests begin with none."""
    yield
    RUNNING.clear()
    with django_db_blocker.unblock():
        call_command("flush", interactive=False, verbosity=0)
        connections.close_all()
