"""A database that does not answer, for as long as a block lasts."""

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
    """Nobody else gets at the table, not even to read (PostgreSQL).

    In the block a statement may take this many seconds, by default as many as the settings say. A short limit that also
    held before and after the block would end statements of the test itself on a busy machine.
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
