"""An outage of the database for tests: a table that is locked for the time of a block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from django.db import connection, transaction
from django.test import override_settings

__all__ = ["locked"]


@asynccontextmanager
async def locked(table: str, seconds: float | None = None) -> AsyncIterator[None]:
    """Lock the table: no other session can read or write it (PostgreSQL).

    `seconds`: the time limit of a statement in the block; by default that of the settings. It applies in the block only,
    because on a busy machine a short limit would also end statements of the test itself.
    """
    limit = {} if seconds is None else {"A2A_DATABASE_SECONDS": seconds}
    let_go, held = threading.Event(), threading.Event()
    with override_settings(**limit):
        holder = asyncio.create_task(asyncio.to_thread(_hold, table, held, let_go))
        try:
            assert await asyncio.to_thread(held.wait, 10), f"{table} was not locked"
            yield
        finally:
            let_go.set()
            await holder


def _hold(table: str, held: threading.Event, let_go: threading.Event) -> None:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            # A test that is rolled back holds the table itself, and would wait for itself.
            cursor.execute("set local lock_timeout = '9s'")
            cursor.execute(f"lock table {table} in access exclusive mode")
            held.set()
            let_go.wait(60)
    finally:
        connection.close()
