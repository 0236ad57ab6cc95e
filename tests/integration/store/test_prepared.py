"""The store's statements are prepared, by plans that fit a database which has grown since."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.db import connection
from psycopg import _queries

from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import db as store_db
from a2a_tasks.store import runs
from a2a_tasks.store.accept import accept, accept_many
from a2a_tasks.store.backend.statements import fetch
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.event_log import read_after
from tests.support.store.world import Pen, claim, found, held, new

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.backend("stack")]
#: Since the fifth execution PostgreSQL may keep a plan.
OFTEN = 8


@pytest_asyncio.fixture(autouse=True)
async def threads(settings: Any, request: pytest.FixtureRequest) -> AsyncIterator[None]:
    """One thread, which begins anew with these settings, and ends."""
    settings.A2A_STORE_THREADS = 1
    settings.A2A_PREPARE = getattr(request, "param", True)
    await asyncio.to_thread(store_db.close)
    yield
    await asyncio.to_thread(store_db.close)


def prepared() -> dict[str, tuple[str, int, int]]:
    """The statements of this session: name -> (text, number of parameters, how often by the plan that was kept)."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select name, statement, cardinality(parameter_types), generic_plans"
            " from pg_prepared_statements where name like '_pg3%'"
        )
        return {name: (text, count, kept) for name, text, count, kept in cursor.fetchall()}


def live(first: int) -> None:
    """Tasks from the first word to the last, as often as it takes until a plan is kept."""
    for n in range(first, first + OFTEN):
        pen = Pen(held(f"task-{n}"))
        pen.state(TaskState.WORKING)
        pen.begin("a", "x")
        pen.end()
        read_after(pen.run.task, 1)
        assert found(f"task-{n}").last_event == 4
        accept(new(f"queued-{n}"))
        (run,) = claim()
        assert runs.heartbeat([run.token])
        runs.hand_back([run.token])
        (run,) = claim()
        Pen(run).end()


async def test_what_a_task_needs_is_prepared() -> None:
    await run_in_thread(live, 0)
    texts = " ".join(text for text, _, _ in (await run_in_thread(prepared)).values())
    for table in ("context", "run", "event", "artifact"):
        assert f"insert into a2a_tasks_{table} " in texts
    for lock in ("for update of r, t skip locked", "for update skip locked"):
        assert lock in texts


async def test_what_a_task_needs_is_not_searched_for_its_values_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """psycopg does that to statements of more than 4,096 characters (findings/)."""
    searched: list[bytes] = []
    search = _queries._split_query

    def heard(query: bytes, *args: Any) -> Any:
        searched.append(query)
        return search(query, *args)

    await run_in_thread(live, 0)
    monkeypatch.setattr(_queries, "_split_query", heard)
    await run_in_thread(live, OFTEN)
    assert searched == []


@pytest.mark.parametrize("threads", [False], indirect=True)
async def test_nothing_is_where_it_is_switched_off() -> None:
    await run_in_thread(live, 0)
    assert await run_in_thread(prepared) == {}


def plans() -> dict[str, str]:
    """The plans that were kept, by what they are for."""
    kept = {}
    with connection.cursor() as cursor:
        for name, (text, count, often) in prepared().items():
            if often:
                values = f"({', '.join(['null'] * count)})" if count else ""
                cursor.execute(f"explain execute {name}{values}")
                kept[text] = "\n".join(line for (line,) in cursor.fetchall())
    return kept


async def test_plans_of_a_young_database_fit_when_it_has_grown() -> None:
    """The first tasks come to empty tables without statistics; the session keeps the plans that were made then."""
    await run_in_thread(live, 0)
    for first in range(0, 3000, 500):
        await run_in_thread(accept_many, [new(f"more-{n}") for n in range(first, first + 500)])
    kept = await run_in_thread(plans)
    assert len(kept) >= 5
    read_whole = [
        table for plan in kept.values() for table in re.findall(r"Seq Scan on (\w+)", plan)
    ]
    assert read_whole == []


async def test_a_statement_whose_columns_a_migration_has_changed_is_prepared_anew() -> None:
    def read() -> list[tuple[Any, ...]]:
        return fetch("select n from changing", [])

    await sync_to_async(change)("create table changing as select 1 as n")
    try:
        assert await run_in_thread(read) == [(1,)]
        await sync_to_async(change)("alter table changing alter column n type bigint")
        assert await run_in_thread(read) == [(1,)]
    finally:
        await sync_to_async(change)("drop table changing")


def change(statement: str) -> None:
    """As a migration does, which is another session."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
