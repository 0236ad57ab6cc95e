"""How many notifications a second one process delivers, from the log to the receiver: `python -m lab.farm.end_to_end [tasks] [receivers]`.

On the backend of TEST_BACKEND, in a database of its own. Each task has three events to tell of; the receivers are paths
of one process. Compare with the bare loop of httpx of `lab.farm.throughput`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time

import django
from prometheus_client import REGISTRY

# ruff: noqa: PLC0415 - importable only once Django is set up
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
TOLD = 3


async def receive() -> None:
    """Answer whatever comes, and tell the port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
                await reader.readexactly(int(length))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


def write(tasks: int, url: str, receivers: int) -> None:
    """So many ended tasks with a webhook each."""
    from a2a_push.store import configs
    from a2a_tasks.protocol.values import PushConfig, TaskState
    from tests.support.store.world import Pen, held

    for n in range(tasks):
        pen = Pen(held(f"t-{n}", context_id=f"c-{n}"))
        config = PushConfig(
            url=f"{url}/{n % receivers}", id="c", task_id=f"t-{n}", dialect="v10", token="t" * 20
        )
        configs.put(pen.run.task, config)
        pen.state(TaskState.WORKING)
        pen.begin("a", "some text of an answer " * 40)
        pen.end()


def delivered() -> float:
    """How many were, by this process's counters."""
    value = REGISTRY.get_sample_value("a2a_webhook_attempt_seconds_count", {"outcome": "delivered"})
    return value or 0.0


async def deliver(count: int) -> float:
    """Seconds until so many are delivered."""
    from a2a_push.delivery import Deliverer

    made, begun, used = Deliverer(), time.monotonic(), time.process_time()
    made.start()
    while delivered() < count:
        await asyncio.sleep(0.05)
    seconds, used = time.monotonic() - begun, time.process_time() - used
    sys.stdout.write(f"{1000 * used / count:.2f} ms of CPU each\n")
    await made.drain(5)
    return seconds


def main(tasks: int = 1000, receivers: int = 50) -> None:
    """Write, deliver, tell."""
    django.setup()
    from django.conf import settings
    from django.db import connections
    from django.test.utils import setup_databases, teardown_databases

    from a2a_tasks.store import db
    from tests import backend

    settings.A2A_WEBHOOK_ALLOW_PRIVATE = settings.A2A_WEBHOOK_ALLOW_HTTP = True
    made = setup_databases(verbosity=0, interactive=False)
    command = [sys.executable, "-m", "lab.farm.end_to_end", "receive"]
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            url = f"http://127.0.0.1:{child.stdout.readline().strip()}"
            begun = time.monotonic()
            write(tasks, url, receivers)
            sys.stdout.write(f"written in {time.monotonic() - begun:.1f} s\n")
            sys.stdout.flush()
            seconds = asyncio.run(deliver(tasks * TOLD))
            child.terminate()
        sys.stdout.write(f"{tasks * TOLD / seconds:.0f}/s, {tasks} tasks, {receivers} receivers\n")
    finally:
        db.close()
        connections.close_all()
        teardown_databases(made, verbosity=0)
        backend.stop()


if __name__ == "__main__":
    if sys.argv[1:] == ["receive"]:
        asyncio.run(receive())
    else:
        main(*(int(argument) for argument in sys.argv[1:]))
