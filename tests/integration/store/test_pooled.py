"""Behind a pool of transactions (A2A_PREPARE=0): every statement has its limits, and no session keeps them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from django.db import connection, transaction

from a2a_tasks.models import Context
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store import db as store_db
from a2a_tasks.store.backend.statements import fetch
from a2a_tasks.store.db import run_in_thread
from tests.integration.store.test_db import ask, end_and_close, one_context

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.backend("stack")]
LIMITS = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
NONE = ("0", "0", "0")
OURS = ("3s", "2700ms", "2s")
SHOW = "select current_setting('{}'), current_setting('{}'), current_setting('{}')".format(*LIMITS)


@pytest_asyncio.fixture(autouse=True)
async def pooled(settings: Any) -> AsyncIterator[None]:
    """Let the store's threads begin anew, with these settings, and end."""
    settings.A2A_PREPARE = False
    settings.A2A_DATABASE_SECONDS, settings.A2A_LEASE_SECONDS = 3.0, 6.0
    await asyncio.to_thread(store_db.close)
    yield
    await asyncio.to_thread(store_db.close)


def by_django() -> tuple[str, ...]:
    """The limits that a statement of Django's has."""
    with connection.cursor() as cursor:
        cursor.execute(SHOW)
        return tuple(cursor.fetchone())


def by_fetch() -> tuple[str, ...]:
    """The limits that a statement of the store's own has."""
    (row,) = fetch(SHOW, [])
    return tuple(row)


def in_a_transaction() -> tuple[str, ...]:
    """The limits that the second statement of a transaction has."""
    with transaction.atomic():
        one_context("a")
        return by_django()


def of_the_session() -> tuple[str, ...]:
    """The limits that stay in the session."""
    held: Any = connection.connection
    return tuple(held.execute(SHOW).fetchone())


@pytest.mark.parametrize("said", [by_django, by_fetch, in_a_transaction])
async def test_a_statement_has_limits_and_its_session_none(said: Any) -> None:
    def both() -> tuple[Any, Any]:
        return said(), of_the_session()

    assert await run_in_thread(both) == (OURS, NONE)


async def test_what_is_read_without_a_transaction_is_read_whole(settings: Any) -> None:
    for name in "abc":
        await run_in_thread(one_context, name)
    names = Context.objects.order_by("public_id").values_list("public_id", flat=True)
    assert await run_in_thread(list, names) == ["a", "b", "c"]
    assert await run_in_thread(lambda: list(names.iterator())) == ["a", "b", "c"]
    assert await run_in_thread(Context.objects.filter(public_id="a").update, agent="other") == 1
    assert await run_in_thread(Context.objects.filter(agent="other").exists)


async def test_a_session_that_ends_before_its_limits_are_set_is_an_outage() -> None:
    def work() -> None:
        with transaction.atomic():
            pid = connection.connection.info.backend_pid
            ended.append(pid)
            asyncio.run_coroutine_threadsafe(asyncio.to_thread(end_and_close, [pid]), loop).result()
            Context.objects.count()

    ended: list[int] = []
    loop = asyncio.get_running_loop()
    assert await run_in_thread(ask)
    with pytest.raises(Overloaded):
        await run_in_thread(work)
    assert await run_in_thread(ask) not in ended
