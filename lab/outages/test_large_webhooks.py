"""One client's large webhooks beside everybody's small ones, sent by a real process at default settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pytest_django import Settings

from a2a_tasks.store.db import run_in_thread
from tests import backend
from tests.support.processes import Child, python
from tests.support.procfile import worker_arguments
from tests.support.push.inbox import inbox, pen, register, told

pytestmark = pytest.mark.django_db(transaction=True)
#: Receivers are on this machine.
ENVIRON = {"A2A_WEBHOOK_ALLOW_PRIVATE": "1", "A2A_WEBHOOK_ALLOW_HTTP": "1"}
MIB = 1024 * 1024


@contextmanager
def sender() -> Iterator[Child]:
    """A process that sends: a worker of webhooks, or on the embedded host the web process."""
    if backend.backend() == backend.STACK:
        arguments, ready = worker_arguments("pusher", "pusher1"), " ready."
    else:
        arguments, ready = ["-m", "django", "serve", "--port", "0"], "Serving on"
    with python(arguments, ENVIRON) as child:
        child.wait_for(ready)
        yield child


def most_memory(child: Child) -> int:
    """The most bytes that a process has held so far."""
    lines = Path(f"/proc/{child.process.pid}/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


async def ended(task: str, url: str, *, webhooks: int, megabytes: float) -> None:
    """An ended task with an artifact of that size, and webhooks of 0.3, which are sent the task."""
    writer = await pen(task, context_id=f"of {task}")
    for n in range(webhooks):
        await register(f"{url}/{n}", task, f"{task}-{n}", dialect="v03")
    pieces = max(1, int(megabytes) // 4)
    await run_in_thread(writer.begin, "a", "x" * int(megabytes / pieces * MIB))
    for _ in range(pieces - 1):
        await run_in_thread(writer.add, "a", "x" * int(megabytes / pieces * MIB))
    await run_in_thread(writer.end)


async def test_small_webhooks_arrive_while_large_ones_of_another_client_are_pending(
    settings: Settings,
) -> None:
    settings.A2A_WEBHOOK_ALLOW_HTTP = settings.A2A_WEBHOOK_ALLOW_PRIVATE = True
    async with inbox() as silent, inbox() as bystander:
        silent.answers = [silent.never] * 10_000
        with sender() as child:
            await ended("huge", silent.url("/huge"), webhooks=16, megabytes=40)
            for n in range(8):
                name = f"large-{n}"
                await ended(name, silent.url(f"/{name}"), webhooks=16, megabytes=0.9)
            for n in range(20):
                await ended(f"small-{n}", bystander.url(), webhooks=1, megabytes=0.0001)
                await bystander.has(n + 1)
            await silent.has(16)
            pending = await told(status="pending", task__public_id__in=["huge", "large-0"])
            assert len(pending) == 32
            assert most_memory(child) < 1024 * MIB
            assert child.process.poll() is None, child.log
