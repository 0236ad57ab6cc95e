"""What journeys, and campaigns that start hosts as they do, ask for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from typing import Protocol, TypeVar

import pytest
from django.core.management import call_command
from django.db import connections
from pytest_django.plugin import DjangoDbBlocker

from tests.journeys.hosts import RUNNING, SHARED, Host, Workers, host
from tests.support.collector import Collector, collector

__all__ = ["Ask", "ask", "emptied", "pytest_runtest_makereport", "site", "traces", "workers"]

T = TypeVar("T")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the logs of the processes with a failure."""
    report = yield
    if report.failed:
        report.sections += [(f"log of {name}", child.log) for name, child in RUNNING.items()]
    return report


@pytest.fixture(scope="package")
def emptied(database: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Empty the tables when the processes of the folder have ended: other tests begin with none."""
    yield
    RUNNING.clear()
    with django_db_blocker.unblock():
        call_command("flush", interactive=False, verbosity=0)
        connections.close_all()


@pytest.fixture(scope="package")
def traces() -> Iterator[Collector]:
    """The collector that gets the traces of all processes."""
    with collector() as made:
        yield made


@pytest.fixture(scope="package")
def site(emptied: None, traces: Collector) -> Iterator[Host]:
    """The host of this backend, with gRPC and webhooks. Stories leave each other's rows alone.

    The process that is `there` looks often, as the pusher does: how long an operator is told to wait depends on it.
    """
    with host(
        {**SHARED, **traces.environ}, grpc=True, push=True, of_some={"A2A_POLL_SECONDS": "0.3"}
    ) as made:
        yield made


@pytest.fixture(scope="package")
def workers(site: Host, traces: Collector) -> Iterator[Workers]:
    """Workers beside those of the host, which stories may hurt (stack)."""
    with ExitStack() as running:
        yield Workers(running, traces.environ)


class Ask(Protocol):
    """Do this on the database of the host, beside its processes."""

    async def __call__(self, work: Callable[[], T]) -> T:
        """What comes of it."""


@pytest.fixture
def ask(emptied: None, django_db_blocker: DjangoDbBlocker) -> Ask:
    """Look at what the API does not tell, or make what only operators make."""

    def done(work: Callable[[], T]) -> T:
        with django_db_blocker.unblock():
            try:
                return work()
            finally:
                connections.close_all()

    async def asked(work: Callable[[], T]) -> T:
        return await asyncio.to_thread(done, work)

    return asked
