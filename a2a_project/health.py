"""Health: `/healthz` says the process answers, `/readyz` that it can work. No details for strangers but that migrations are missing.

Whoever started the process and asked for it is told once, when `/readyz` is well for the first time.
"""

from __future__ import annotations

import asyncio

from django.db import DatabaseError, connection

from a2a_tasks import lifetime, process
from a2a_tasks.bindings.http import Receive, Scope, Send, respond
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store.hop import hop

__all__ = ["PATHS", "serve", "tell_when_ready"]

PATHS = {"/healthz", "/readyz"}
DATABASE_SECONDS = 2.0
#: Seconds between looks of a new process whether it can work.
LOOK_SECONDS = 0.2
_looking: set[asyncio.Task[None]] = set()


def _ask_database() -> None:
    with (
        connection.cursor() as cursor
    ):  # the table, too: a database without it is reachable, but of no use
        cursor.execute("select 1 from a2a_tasks_task limit 1")


async def _trouble() -> str:
    """Why this process cannot work; empty = it can."""
    if lifetime.draining():
        return "unavailable"
    try:
        async with asyncio.timeout(DATABASE_SECONDS):
            await hop(_ask_database)
    except (Overloaded, TimeoutError):
        return "unavailable"
    except DatabaseError:
        return "the tables cannot be read: run manage.py migrate, with the rights to make them"
    return ""


async def tell_when_ready() -> None:
    """From now on look whether this process can work, and tell whoever started it once it can."""
    task = asyncio.create_task(_look())
    _looking.add(task)
    task.add_done_callback(_looking.discard)


async def _look() -> None:
    while await _trouble():  # noqa: ASYNC110 - the database tells nobody
        await asyncio.sleep(LOOK_SECONDS)
    process.tell_ready()


async def serve(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a probe: liveness never touches the database."""
    trouble = "" if scope["path"] == "/healthz" else await _trouble()
    body = b'{"status":"%s"}' % (trouble or "ok").encode()
    await respond(send, 503 if trouble else 200, body, [(b"cache-control", b"no-store")])
