"""Processes that serve everything this backend has at its doors and watch themselves, and an operator's session."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from django.db import connections
from pytest_django.plugin import DjangoDbBlocker

from lab.oddinput.measuring import Measured
from tests import backend
from tests.journeys.callers import closed_to_strangers
from tests.journeys.fixtures import emptied
from tests.journeys.hosts import APPS, Web, embedded, host, web
from tests.support import people
from tests.support.access.issuer import Issuer, issuing

__all__ = ["Door", "emptied", "session"]

DOORS = {"A2A_DOORS": "mcp,openai,ag-ui,catalog"}
WATCHING = {"A2A_APPS": f"{APPS['A2A_APPS']},lab.oddinput.watching"}


@dataclass(frozen=True)
class Door:
    """A web process, what measures it, and the gRPC beside it with what measures that."""

    url: str
    measured: Measured
    calls: Measured
    channel: grpc.Channel


@dataclass(frozen=True)
class GuardedDoor:
    """A web process whose callers need tokens, what measures it, and who issues the tokens."""

    web: Web
    measured: Measured
    issuer: Issuer


def watch(directory: Path) -> dict[str, str]:
    """Return the settings of processes that write there how long their interpreters were held."""
    return {**WATCHING, "ODDINPUT_HOLDS": str(directory)}


@pytest.fixture(scope="package")
def door(emptied: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """The embedded host as `make run` starts it, or a host of the stack; both with gRPC."""
    holds = tmp_path_factory.mktemp("holds")
    with host({**watch(holds), **DOORS}, grpc=True) as made:
        first = made.webs[0].process.process.pid
        calls = made.grpc_process.process.pid if made.grpc_process else first
        with grpc.insecure_channel(f"127.0.0.1:{made.grpc}") as channel:
            yield Door(made.here, Measured(first, holds), Measured(calls, holds), channel)


@pytest.fixture(scope="package")
def issuer() -> Iterator[Issuer]:
    """An issuer on a thread of its own."""
    loop, begun, over = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    made: list[Issuer] = []

    async def serve() -> None:
        async with issuing() as one:
            made.append(one)
            begun.set()
            await over.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    begun.wait()
    yield made[0]
    loop.call_soon_threadsafe(over.set)
    thread.join()
    loop.close()


@pytest.fixture(scope="package")
def guarded(
    emptied: None, issuer: Issuer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GuardedDoor]:
    """A web process that knows its callers by tokens of the issuer."""
    holds = tmp_path_factory.mktemp("holds of a guarded host")
    alone = web if backend.backend() == backend.STACK else embedded
    with alone({**watch(holds), **closed_to_strangers(issuer)}) as one:
        yield GuardedDoor(one, Measured(one.process.process.pid, holds), issuer)


@pytest.fixture(scope="package")
def session(emptied: None, django_db_blocker: DjangoDbBlocker) -> str:
    """The session of a superuser."""
    with django_db_blocker.unblock():
        try:
            return people.signed_in(people.operator("odd"))
        finally:
            connections.close_all()
