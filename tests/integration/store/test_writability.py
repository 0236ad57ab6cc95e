"""A database that answers and takes no writes: `/readyz` says so, and says when it is over."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import psycopg
import pytest
from asgiref.sync import SyncToAsync
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from a2a_project import health
from a2a_tasks.models import Worker
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store import workers, writability
from a2a_tasks.store.accept import accept_batched
from a2a_tasks.store.db import run_in_thread
from tests.integration.store.test_workers import beat
from tests.support.store.world import new

pytestmark = pytest.mark.django_db(transaction=True)
#: The rights of a host.
ALL = (
    "grant all on all tables in schema public to",
    "grant all on all sequences in schema public to",
)


async def readiness() -> int:
    """The status of `/readyz`, asked a second later than before."""
    writability._refusal.next_try = 0.0
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await health.serve("/readyz", send)
    return int(sent[0]["status"])


def write_much() -> None:
    """Write more than fits into the free room of a page."""
    Worker.objects.create(name="much", kind="web", host="", pid=1, agents={"a": "x" * 200_000})


@contextlib.contextmanager
def session() -> Iterator[psycopg.Connection]:
    """A session beside the store's."""
    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as opened:
        opened.execute("set default_transaction_read_only = off; set role none")
        yield opened


def end_others(opened: psycopg.Connection) -> None:
    """End all other sessions of this database: the store connects anew."""
    opened.execute(
        "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
        " where datname = current_database() and pid <> pg_backend_pid()"
    )
    # The thread of `sync_to_async` may have had one, and nothing would close it before a later test.
    SyncToAsync.single_thread_executor.submit(lambda: connection.close()).result()


@contextlib.contextmanager
def read_only() -> Iterator[None]:
    """New sessions are read-only, as on a standby."""
    with session() as opened:
        name = opened.info.dbname
        opened.execute(f"alter database {name} set default_transaction_read_only = on")
        end_others(opened)
        try:
            yield
        finally:
            opened.execute(f"alter database {name} reset default_transaction_read_only")
            end_others(opened)


@contextlib.contextmanager
def as_role(*grants: str) -> Iterator[Callable[[str], None]]:
    """New sessions have only these rights; the function changes them.

    Each grant ends with `to` or `from`; the name of the role follows.
    """
    with session() as opened:
        name = opened.info.dbname

        def change(grant: str) -> None:
            opened.execute(f"{grant} {name}_limited")

        opened.execute(f"create role {name}_limited")
        for grant in grants:
            change(grant)
        opened.execute(f"alter database {name} set role = {name}_limited")
        end_others(opened)
        try:
            yield change
        finally:
            opened.execute(f"alter database {name} reset role")
            end_others(opened)
            opened.execute(f"drop owned by {name}_limited; drop role {name}_limited")


def without_rights() -> AbstractContextManager[object]:
    """New sessions may only read."""
    return as_role("grant select on all tables in schema public to")


def without_the_audit_log() -> AbstractContextManager[object]:
    """New sessions may write into every table but that of the audit log."""
    return as_role(*ALL, "revoke insert on a2a_tasks_auditentry from")


def leave_no_room() -> None:
    """Take the pages that other tests have left free, and close this thread's connection."""
    with connection.cursor() as cursor:
        cursor.execute("vacuum")
    connection.close()


def hang_up() -> None:
    """Close this thread's connection."""
    connection.close()


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """Sessions may not let the database grow. The limit of a session ends with it."""

    def limit(connection: BaseDatabaseWrapper, **_: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("pragma max_page_count = 1")

    connection_created.connect(limit)
    yield
    connection_created.disconnect(limit)


@pytest.fixture(autouse=True)
def unremembered() -> Iterator[None]:
    """No refusal of another test."""
    writability._refusal.lasts = False
    yield
    writability._refusal.lasts = False
    connection.close()  # the test has ended its session


@pytest.mark.backend("stack")
@pytest.mark.parametrize("refuse", [read_only, without_rights])
async def test_a_process_that_may_only_read_is_not_ready_until_it_may_write(
    refuse: Callable[[], AbstractContextManager[object]],
) -> None:
    assert await readiness() == 200
    with refuse():
        with pytest.raises(Overloaded):
            await run_in_thread(write_much)
        assert writability.are_writes_refused()
        assert [await readiness(), await readiness()] == [503, 503]
    assert await readiness() == 200
    assert not writability.are_writes_refused()
    assert not await run_in_thread(Worker.objects.exists)


@pytest.mark.backend("stack")
async def test_a_process_that_may_not_write_the_audit_log_refuses_messages_for_a_while() -> None:
    with without_the_audit_log():
        with pytest.raises(Overloaded) as refused:
            await accept_batched(new("unheard"))
        assert refused.value.undone
        assert refused.value.metadata["retry_after"]
        assert [await readiness(), await readiness()] == [503, 503]
    assert await readiness() == 200
    await accept_batched(new("heard"))


@pytest.mark.backend("sqlite")
async def test_a_process_whose_disk_is_full_is_not_ready_until_there_is_room() -> None:
    assert await readiness() == 200
    await run_in_thread(leave_no_room)
    with full_disk():
        with pytest.raises(Overloaded):
            await run_in_thread(write_much)
        assert [await readiness(), await readiness()] == [503, 503]
        await run_in_thread(hang_up)
    assert await readiness() == 200
    assert not await run_in_thread(Worker.objects.exists)


async def test_it_is_asked_often_and_tried_once_a_second() -> None:
    await run_in_thread(beat)
    writability._refusal.lasts, writability._refusal.next_try = True, float("inf")
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await health.serve("/readyz", send)
    assert sent[0]["status"] == 503


async def test_the_probe_is_no_process_for_operators() -> None:
    await run_in_thread(writability.try_to_write)
    assert await run_in_thread(workers.list_seen) == []
