"""Health: `/healthz` shows that the process answers, `/readyz` that it can work.

Readers are not identified, so the only detail in an answer is that migrations are missing.
"""

from __future__ import annotations

import asyncio

from django.db import DatabaseError, connection

from a2a_tasks import process_lifetime
from a2a_tasks.bindings.http import Send, respond
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.writability import are_writes_refused, try_to_write

__all__ = ["PATHS", "ask_database", "serve"]

PATHS = {"/healthz", "/readyz"}
DATABASE_SECONDS = 2.0


def ask_database() -> None:
    """Read from a table of the host. Raises DatabaseError."""
    # The table, too: a database without it is reachable, but unusable.
    with connection.cursor() as cursor:
        cursor.execute("select 1 from a2a_tasks_task limit 1")


async def _trouble() -> str:
    """Return the reason why this process cannot work; empty = it can."""
    if process_lifetime.is_draining():
        return "unavailable"
    try:
        async with asyncio.timeout(DATABASE_SECONDS):
            await run_in_thread(ask_database)
            if are_writes_refused():
                await run_in_thread(try_to_write)
    except (Overloaded, TimeoutError):
        return "unavailable"
    except DatabaseError:
        if are_writes_refused():
            return "unavailable"
        return "the tables cannot be read: run manage.py migrate, with the rights to make them"
    return "unavailable" if are_writes_refused() else ""


async def serve(path: str, send: Send) -> None:
    """Answer a probe, of PATHS: liveness never touches the database."""
    trouble = "" if path == "/healthz" else await _trouble()
    body = b'{"status":"%s"}' % (trouble or "ok").encode()
    await respond(send, 503 if trouble else 200, body, [(b"cache-control", b"no-store")])
