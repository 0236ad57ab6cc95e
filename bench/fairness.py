"""`python -m bench.fairness`: how long one tenant's tasks wait to start while another has thousands in the queue.

One worker with few slots, agents that take half a second each. Tenant A queues its tasks; once they fill the slots,
tenant B sends some: one by one, and then all at once. What counts is when B's runs start, by the database's clock, in
four hosts: without A's tasks, with rounds (as it is), with rounds and a bound for each tenant
(A2A_RUN_SLOTS_PER_TENANT), and without rounds, in the order in which everything came, as a plain queue would.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import psycopg
import uvloop

from bench import procs
from bench.client import Endpoint, answer, send
from bench.postgres import Server
from bench.procs import Child, say
from bench.targets import CACHE, ROOT, OursCelery, Setup
from bench.waiting import CLIENTS

STARTS = """
select extract(epoch from r.started_at - r.created_at)::float8 * 1000 from a2a_tasks_run r
where r.share = 'tenant:b' and r.id > %s order by r.id"""
STARTED = "select count(*) from a2a_tasks_run where share = 'tenant:b' and started_at is not null"
LAST = "select coalesce(max(id), 0) from a2a_tasks_run"
RUNNING = "select count(*) from a2a_tasks_run where share = 'tenant:a' and status = 'running'"
NO_ROUNDS = """update a2a_tasks_run set round = 1000000000
where status = 'queued' and share = 'tenant:b' and round < 1000000000"""
#: B's tasks in a burst, and those one by one, with seconds between them.
COUNT, APART = 20, 0.1


class Shared(OursCelery):
    """The host with a worker of few slots, and what the arm of the experiment wants."""

    name = "ours-shared"

    def __init__(self, setup: Setup, settings: dict[str, str]) -> None:
        super().__init__(setup)
        self.arm = settings

    def env(self, redis: str = "") -> dict[str, str]:
        """The settings of this arm."""
        return {**super().env(redis), "A2A_APPS": "examples.demo,bench.waiters", **self.arm}

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


async def arm(
    server: Server, args: argparse.Namespace, settings: dict[str, str], *, queued: int, rounds: bool
) -> tuple[list[float], list[float]]:
    """Milliseconds until B's runs start: those sent one by one, and those sent at once."""
    target = Shared(Setup(server), {"A2A_RUN_SLOTS": str(args.slots), **settings})
    target.prepare()
    async with target.up():
        with psycopg.connect(target.database, autocommit=True) as connection:
            text = str(args.seconds)
            if queued:
                await _fill(target, connection, text, queued)
            singly = await _measured(target, connection, text, rounds=rounds, apart=APART)
            at_once = await _measured(target, connection, text, rounds=rounds, apart=0)
    return singly, at_once


async def _fill(
    target: Shared, connection: psycopg.Connection[Any], text: str, queued: int
) -> None:
    """Have A's tasks wait, all of them at one moment, and then fill the slots."""
    os.kill(target.worker.pid, signal.SIGSTOP)
    try:
        await _send(target.a, text, queued, clients=CLIENTS, apart=0)
    finally:
        os.kill(target.worker.pid, signal.SIGCONT)
    while not _one(connection, RUNNING):  # noqa: ASYNC110 - the database tells nobody
        await asyncio.sleep(0.05)
    await asyncio.sleep(2)


async def _measured(
    target: Shared,
    connection: psycopg.Connection[Any],
    text: str,
    *,
    rounds: bool,
    apart: float,
) -> list[float]:
    last, before = _one(connection, LAST), _one(connection, STARTED)
    clients = 1 if apart else COUNT
    sending = asyncio.create_task(_send(target.b, text, COUNT, clients=clients, apart=apart))
    while not sending.done() or _one(connection, STARTED) < before + COUNT:
        if not rounds:
            connection.execute(NO_ROUNDS.encode())
        await asyncio.sleep(0.02)
    await sending
    await asyncio.sleep(2)  # what it left behind in the slots
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


def _shown(name: str, arm: tuple[list[float], list[float]]) -> str:
    cells = []
    for starts in arm:
        cuts = statistics.quantiles(starts, n=20, method="inclusive")
        cells += [f"{cuts[9]:.0f}", f"{cuts[18]:.0f}"]
    return f"| {name} | {' | '.join(cells)} |"


async def measure(server: Server, args: argparse.Namespace) -> None:
    """Every arm, and the table."""
    bound = {"A2A_RUN_SLOTS_PER_TENANT": str(args.slots * 3 // 5)}
    arms: dict[str, tuple[dict[str, str], int, bool]] = {
        "nothing queued": ({}, 0, True),
        f"{args.queued} of A queued": ({}, args.queued, True),
        f"the same, at most {args.slots * 3 // 5} slots a tenant": (bound, args.queued, True),
        "the same, in the order they came": ({}, args.queued if args.fifo else 0, False),
    }
    print("| B's start, ms | one by one p50 | p95 | at once p50 | p95 |")
    print("| --- | --- | --- | --- | --- |", flush=True)
    for name, (settings, queued, rounds) in arms.items():
        if not rounds and not args.fifo:
            continue
        say(name)
        measured = await arm(server, args, settings, queued=queued, rounds=rounds)
        print(_shown(name, measured), flush=True)


def main() -> int:
    """Measure."""
    parser = argparse.ArgumentParser(prog="python -m bench.fairness", description=__doc__)
    parser.add_argument("--queued", type=int, default=10_000, help="tasks of tenant A")
    parser.add_argument("--slots", type=int, default=50, help="of the one worker")
    parser.add_argument("--seconds", type=float, default=0.5, help="that a run takes")
    parser.add_argument("--fifo", action="store_true", help="also without rounds; takes minutes")
    args = parser.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    server = Server()
    try:
        uvloop.run(measure(server, args))
    except procs.Failed as error:
        raise SystemExit(str(error)) from None
    finally:
        server.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
