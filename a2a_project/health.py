"""Health: `/healthz` says the process answers, `/readyz` that it can work. No details for strangers.

Whoever started the process and asked for it is told once, when `/readyz` is well for the first time.
"""

from __future__ import annotations

import asyncio

from django.db import connection

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


async def _ready() -> bool:
    if lifetime.draining():
        return False
    try:
        async with asyncio.timeout(DATABASE_SECONDS):
            await hop(_ask_database)
    except (Overloaded, TimeoutError):
        return False
    return True


async def tell_when_ready() -> None:
    """From now on look whether this process can work, and tell whoever started it once it can."""
    task = asyncio.create_task(_look())
    _looking.add(task)
    task.add_done_callback(_looking.discard)


async def _look() -> None:
    while not await _ready():  # noqa: ASYNC110 - the database tells nobody
        await asyncio.sleep(LOOK_SECONDS)
    process.tell_ready()


async def serve(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a probe: liveness never touches the database."""
    well = scope["path"] == "/healthz" or await _ready()
    body = b'{"status":"ok"}' if well else b'{"status":"unavailable"}'
    await respond(send, 200 if well else 503, body, [(b"cache-control", b"no-store")])
