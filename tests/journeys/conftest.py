"""Journeys run against real processes on this run's database, and leave it empty."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection, connections
from django.test.utils import setup_databases, teardown_databases
from pytest_django.plugin import DjangoDbBlocker

from a2a_tasks.store import hop
from tests.journeys.hosts import RUNNING


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the logs of the processes with a failure."""
    report = yield
    if report.failed:
        report.sections += [(f"log of {name}", child.log) for name, child in RUNNING.items()]
    return report


@pytest.fixture(scope="session")
def database(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The test database, also in a run of journeys only: pytest-django makes it for marked tests alone.

    The mark itself is not for journeys: it holds a transaction, or empties tables under running processes.
    """
    with django_db_blocker.unblock():
        made = None if _has_tables() else setup_databases(verbosity=0, interactive=False)
    yield
    if made is not None:
        hop.close()  # a journey may have used the store itself
        with django_db_blocker.unblock():
            teardown_databases(made, verbosity=0)


def _has_tables() -> bool:
    try:
        return bool(connection.introspection.table_names())
    except OperationalError:
        return False
    finally:
        connections.close_all()


@pytest.fixture(scope="module", autouse=True)
def emptied(database: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Empty the tables when the processes of a module have ended: other tests begin with none."""
    yield
    RUNNING.clear()
    with django_db_blocker.unblock():
        call_command("flush", interactive=False, verbosity=0)
        connections.close_all()
