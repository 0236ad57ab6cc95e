"""`python -m lab.bench.fairness`: the wait of one tenant's tasks while another tenant has thousands in the queue.

One worker, agents that take two seconds each: with all its slots, a hundred starts a second. Tenant A queues its tasks;
once they fill the slots, tenant B sends some: one by one, and then all at once. The result is the start of B's runs, by
the database's clock, in these hosts: without A's tasks; with as many of A's under way, but none that waits (what A's
*work* costs); with A's queue (as it is); with a bound for each tenant besides (A2A_RUN_SLOTS_PER_TENANT); and without
rounds, in the order in which everything came, as a plain queue would. Machines differ from minute to minute: `--times`
goes through all of them so many times, and the table says the medians of the rounds' figures.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import statistics
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg
import uvloop

from lab.bench.client import Endpoint, answer, send
from lab.bench.postgres import Server
from lab.bench.procs import Child, say
from lab.bench.targets import ROOT, OursCelery, server_of_run
from lab.bench.waiting import CLIENTS

STARTS = """
select extract(epoch from r.started_at - r.created_at)::float8 * 1000 from a2a_tasks_run r
where r.share = 'tenant:b' and r.id > %s order by r.id"""
STARTED = "select count(*) from a2a_tasks_run where share = 'tenant:b' and started_at is not null"
LAST = "select coalesce(max(id), 0) from a2a_tasks_run"
RUNNING = "select count(*) from a2a_tasks_run where share = 'tenant:a' and status = 'running'"
NO_ROUNDS = """update a2a_tasks_run set round = 1000000000
where status = 'queued' and share = 'tenant:b' and round < 1000000000"""
#: B's tasks one by one, with seconds between them, and those in a burst.
SINGLY, APART, AT_ONCE = 80, 0.25, 15


class Shared(OursCelery):
    """The host with a worker of few slots, and what the arm of the experiment wants."""

    name = "ours-shared"

    def __init__(self, server: Server, settings: dict[str, str]) -> None:
        super().__init__(server)
        self.arm = settings

    def env(self, redis: str = "") -> dict[str, str]:
        """The settings of this arm."""
        return {**super().env(redis), "A2A_APPS": "examples.demo,lab.bench.waiters", **self.arm}

    def launch(self, port: int) -> Iterator[Child]:
        """The host, and a key for each tenant."""
        yield from super().launch(port)
        self.a, self.b = (
            Endpoint(self.endpoint.url.replace("/demo/", "/sleeper/"), self._key(t)) for t in "ab"
        )

    def _key(self, tenant: str) -> str:
        command = [sys.executable, "manage.py", "api_keys", "create", tenant, "--tenant", tenant]
        env = {**os.environ, **self.env(), "A2A_RUNS": "local"}
        made = subprocess.run(command, cwd=ROOT, env=env, check=True, capture_output=True)
        return made.stdout.decode().strip()


@dataclass(frozen=True, slots=True)
class Arm:
    """One host of the experiment."""

    settings: dict[str, str] = field(default_factory=dict)
    #: Tasks of A that wait.
    queued: int = 0
    #: Tasks of A that are always under way, each sent when another has ended.
    busy: int = 0
    rounds: bool = True


async def measure_arm(server: Server, args: argparse.Namespace, arm: Arm) -> list[float]:
    """Milliseconds until B's runs start, p50 and p95: of those sent one by one, and of those sent at once."""
    target = Shared(server, {"A2A_RUN_SLOTS": str(args.slots), **arm.settings})
    target.prepare()
    async with target.up():
        with psycopg.connect(target.database, autocommit=True) as connection:
            text = str(args.seconds)
            if arm.queued:
                await _fill(target, connection, text, arm.queued)
            async with _busy(target, text, arm.busy):
                singly = await _measure_starts(
                    target, connection, text, rounds=arm.rounds, apart=APART
                )
                at_once = await _measure_starts(
                    target, connection, text, rounds=arm.rounds, apart=0
                )
    return [cut for starts in (singly, at_once) for cut in _cuts(starts)]


def _cuts(starts: list[float]) -> tuple[float, float]:
    cuts = statistics.quantiles(starts, n=20, method="inclusive")
    return cuts[9], cuts[18]


@contextlib.asynccontextmanager
async def _busy(target: Shared, text: str, count: int) -> AsyncIterator[None]:
    """Keep this number of A's tasks under way, and none waiting."""

    over = asyncio.Event()

    async def client() -> None:
        while not over.is_set():
            await answer(target.a, send(text))

    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(client())
        await asyncio.sleep(float(text) + 2 if count else 0)
        yield
        over.set()


async def _fill(
    target: Shared, connection: psycopg.Connection[Any], text: str, queued: int
) -> None:
    """Queue A's tasks at one moment, and then let them fill the slots."""
    os.kill(target.worker.pid, signal.SIGSTOP)
    try:
        await _send(target.a, text, queued, clients=CLIENTS, apart=0)
    finally:
        os.kill(target.worker.pid, signal.SIGCONT)
    while not _one(connection, RUNNING):  # noqa: ASYNC110 - the database sends no hint
        await asyncio.sleep(0.05)
    await asyncio.sleep(float(text) + 2)


async def _measure_starts(
    target: Shared,
    connection: psycopg.Connection[Any],
    text: str,
    *,
    rounds: bool,
    apart: float,
) -> list[float]:
    last, before = _one(connection, LAST), _one(connection, STARTED)
    count, clients = (SINGLY, 1) if apart else (AT_ONCE, AT_ONCE)
    sending = asyncio.create_task(_send(target.b, text, count, clients=clients, apart=apart))
    while not sending.done() or _one(connection, STARTED) < before + count:
        if not rounds:
            connection.execute(NO_ROUNDS.encode())
        await asyncio.sleep(0.02)
    await sending
    await asyncio.sleep(float(text) + 2)  # the runs that are still in the slots
    return [row[0] for row in connection.execute(STARTS.encode(), [last]).fetchall()]


async def _send(endpoint: Endpoint, text: str, count: int, *, clients: int, apart: float) -> None:
    numbers = iter(range(count))

    async def client() -> None:
        for _ in numbers:
            await answer(endpoint, send(text, immediate=True))
            await asyncio.sleep(apart)

    await asyncio.gather(*(client() for _ in range(clients)))


def _one(connection: psycopg.Connection[Any], query: str) -> int:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return int(row[0])


async def measure(server: Server, args: argparse.Namespace) -> None:
    """Every arm, and the table."""
    most, alone = args.slots * 3 // 5, args.slots * 9 // 10
    bound = {"A2A_RUN_SLOTS_PER_TENANT": str(most)}
    arms = {
        "nothing of A": Arm(),
        f"{alone} of A under way, none waits": Arm(busy=alone),
        f"{args.queued} of A wait": Arm(queued=args.queued),
        f"{most} of A under way, none waits": Arm(busy=most),
        f"{args.queued} of A wait, at most {most} slots a tenant": Arm(bound, args.queued),
    }
    if args.fifo:
        arms["the same, in the order they came"] = Arm(queued=args.queued, rounds=False)
    rounds: dict[str, list[list[float]]] = {name: [] for name in arms}
    for number in range(args.times):
        for name, arm in arms.items():
            say(f"{name}, {number + 1} of {args.times}")
            rounds[name].append(await measure_arm(server, args, arm))
            print("  ", [round(figure) for figure in rounds[name][-1]], flush=True)
    print("| B's start, ms | one by one p50 | p95 | at once p50 | p95 |")
    print("| --- | --- | --- | --- | --- |")
    for name, figures in rounds.items():
        medians = (f"{statistics.median(column):.0f}" for column in zip(*figures, strict=True))
        print(f"| {name} | {' | '.join(medians)} |")


def main() -> int:
    """Measure."""
    parser = argparse.ArgumentParser(prog="python -m lab.bench.fairness", description=__doc__)
    parser.add_argument("--queued", type=int, default=10_000, help="tasks of tenant A")
    parser.add_argument("--slots", type=int, default=200, help="of the one worker")
    parser.add_argument("--seconds", type=float, default=2, help="that a run takes")
    parser.add_argument("--times", type=int, default=3, help="go through all hosts so often")
    parser.add_argument("--fifo", action="store_true", help="also without rounds; takes minutes")
    args = parser.parse_args()
    with server_of_run() as server:
        uvloop.run(measure(server, args))
    return 0


if __name__ == "__main__":
    sys.exit(main())
