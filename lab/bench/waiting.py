"""W1: one worker process and many agents that wait at once. Claimed in one go, waited for, ended in one go.

The worker is paused (SIGSTOP) while the messages are sent, so that all runs are due when it goes on. All agents wait
for the same moment. Everything is read from the tables, by the database's clock, and from /proc.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from dataclasses import dataclass, field
from typing import Any

import psycopg

from lab.bench import procs
from lab.bench.client import Endpoint, answer, send
from lab.bench.plan import Plan
from lab.bench.targets import OursWorker, Target
from lab.bench.wrk import Metrics

#: Messages sent at a time.
CLIENTS = 32
EVERY_SECONDS = 0.1
#: Seconds that all agents wait when the last of them has begun, at least.
QUIET = 10.0
PROGRESS = """
select count(*) filter (where r.status = 'running'), count(*) filter (where t.state = 'TASK_STATE_WORKING'),
  count(*) filter (where t.state = 'TASK_STATE_COMPLETED'),
  coalesce(extract(epoch from min(r.lease_until) - clock_timestamp()), 1e9)::float8
from a2a_tasks_run r join a2a_tasks_task t on t.id = r.task_id where r.id > %s"""
OUTCOME = """
select extract(epoch from max(started_at))::float8, extract(epoch from max(ended_at))::float8, sum(attempt - 1)::int
from a2a_tasks_run where id > %s"""


@dataclass
class Watch:
    """The observations since the worker continued."""

    begun: float
    #: Seconds since then until every agent's first word was in the log.
    working: float | None = None
    begun_all: asyncio.Event = field(default_factory=asyncio.Event)
    completed: int = 0
    #: Least seconds any lease had left.
    lease: float = 1e9
    #: Most memory of the worker, in KiB.
    memory: int = 0
    done: asyncio.Event = field(default_factory=asyncio.Event)


async def w1(target: Target, plan: Plan) -> Metrics:
    """agents that wait at once in one worker process, plainly and by steps: all are claimed at once and end at once"""
    assert isinstance(target, OursWorker)
    out: Metrics = {}
    for count, how in plan.waiting:
        figures = await _wait(target, count, how)
        out |= {f"{name}, {count} {how}": value for name, value in figures.items()}
    return out


async def _wait(target: OursWorker, count: int, how: str) -> Metrics:
    worker = target.worker.pid
    with psycopg.connect(target.database, autocommit=True) as connection:
        (last,) = read_row(connection, "select coalesce(max(id), 0) from a2a_tasks_run")
        idle, idle_cpu = procs.memory_kib([worker]), await measure_cpu_share(worker, 3)
        until = time.time() + count / 100 + QUIET + 5
        os.kill(worker, signal.SIGSTOP)
        try:
            await send_all(target.at("waiter"), count, f"{how} {until}")
        finally:
            os.kill(worker, signal.SIGCONT)
        watch = Watch(time.time())
        watching = asyncio.create_task(_watch(connection, watch, worker, last, count))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(watch.begun_all.wait(), until - time.time())
        share = await measure_cpu_share(worker, min(QUIET, until - time.time() - 1))
        waiting = procs.memory_kib([worker])
        await asyncio.wait_for(watch.done.wait(), until - time.time() + 120)
        await watching
        started, ended, again = read_row(connection, OUTCOME, last)
    right = watch.completed == count and not again
    return {
        "MiB more than idle": (waiting - idle) / 1024 if right else None,
        "MiB more at most": (watch.memory - idle) / 1024 if right else None,
        "MiB idle": idle / 1024,
        "s to claim all": started - watch.begun if right else None,
        "s until all have reported that they work": watch.working,
        "% of a core, all waiting": 100 * share,
        "% of a core, idle": 100 * idle_cpu,
        "s a lease had left, at least": watch.lease,
        "s for all to end": ended - until if right else None,
        "not completed": count - watch.completed,
        "begun again": again,
    }


def read_row(connection: psycopg.Connection[Any], query: str, *values: object) -> Any:
    return connection.execute(query.encode(), values).fetchone()


async def send_all(endpoint: Endpoint, count: int, text: str) -> None:
    numbers = iter(range(count))

    async def client() -> None:
        for _ in numbers:
            await answer(endpoint, send(text, immediate=True))

    await asyncio.gather(*(client() for _ in range(CLIENTS)))


async def measure_cpu_share(pid: int, seconds: float) -> float:
    before, begun = procs.cpu_seconds([pid])[pid], time.perf_counter()
    await asyncio.sleep(seconds)
    return (procs.cpu_seconds([pid])[pid] - before) / (time.perf_counter() - begun)


async def _watch(
    connection: psycopg.Connection[Any], watch: Watch, worker: int, last: int, count: int
) -> None:
    while not watch.done.is_set():
        running, working, watch.completed, lease = await asyncio.to_thread(
            read_row, connection, PROGRESS, last
        )
        if watch.working is None and working == count:
            watch.working = time.time() - watch.begun
            watch.begun_all.set()
        if running:
            watch.lease = min(watch.lease, lease)
        watch.memory = max(watch.memory, procs.memory_kib([worker]))
        if watch.completed == count:
            watch.done.set()
        await asyncio.sleep(EVERY_SECONDS)
