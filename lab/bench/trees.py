"""`python -m lab.bench.trees`: trees and chains of agents that call each other, on a process with two slots.

The last agents take 0.2 s. The table has the seconds from the send to the answer, the CPU seconds of process and
database, and the statements that the database counts; for the cancel, the seconds until all 31 tasks have ended.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from statistics import median
from typing import Any

import psycopg
import uvloop

from lab.bench.client import COMPLETED, Endpoint, post, rpc, send
from lab.bench.postgres import Server
from lab.bench.targets import Cost, OursLocal, server_of_run

#: The agents of `lab.bench.waiters`, how deep they call, and how many tasks that makes.
TREES = {
    "gather of 2, 5 levels": ("tree-fan", 4, 31),
    "chain, 6 levels": ("tree-chain", 5, 6),
    'chain, after_crash = "fail"': ("tree-once", 5, 6),
    "chain, in steps": ("tree-step", 5, 6),
    "chain, synchronous": ("tree-thread", 5, 6),
}
OPEN = "select count(*) from a2a_tasks_task where state in ('TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING')"
MADE = "select count(*) from a2a_tasks_task where agent = 'tree-endless' and id > %s"
LAST = "select coalesce(max(id), 0) from a2a_tasks_task"
COMMITS = "select xact_commit from pg_stat_database where datname = current_database()"


class CallingHost(OursLocal):
    """The host with two slots, in one process."""

    name = "ours-trees"
    settings = {"A2A_APPS": "examples.demo,lab.bench.waiters", "A2A_RUN_SLOTS": "2"}

    def at(self, agent: str) -> Endpoint:
        """Where an agent answers."""
        return Endpoint(self.endpoint.url.replace("/demo/", f"/{agent}/"))


async def measure(server: Server, rounds: int, only: str) -> None:
    """Measure, and print the table."""
    target = CallingHost(server)
    target.prepare()
    print("| | tasks | s, each round | CPU s | transactions |\n| --- | --- | --- | --- | --- |")
    async with target.up():
        with psycopg.connect(target.database, autocommit=True) as connection:
            for name, (agent, depth, tasks) in TREES.items():
                if only in name:
                    found = [await _answer(target, connection, agent, depth) for _ in range(rounds)]
                    _print(name, tasks, found)
            if only in "cancel":
                found = [await _cancel(target, connection) for _ in range(rounds)]
                _print("cancel of the tree", 31, found)


def _print(name: str, tasks: int, found: list[tuple[float, float, int]]) -> None:
    seconds, cpu, commits = zip(*found, strict=True)
    told = ", ".join([f"{one:.2f}" for one in seconds])
    print(f"| {name} | {tasks} | {told} | {median(cpu):.2f} | {median(commits):.0f} |", flush=True)


async def _answer(
    target: CallingHost, connection: psycopg.Connection[Any], agent: str, depth: int
) -> tuple[float, float, int]:
    before = _read(connection, COMMITS)
    with Cost(target) as cost:
        answered = await post(target.at(agent), send(str(depth)))
    if COMPLETED.encode() not in answered.body:
        raise RuntimeError(answered.body[:500])
    return cost.wall, cost.server_cpu, _read(connection, COMMITS) - before


async def _cancel(
    target: CallingHost, connection: psycopg.Connection[Any]
) -> tuple[float, float, int]:
    endpoint, last = target.at("tree-endless"), _read(connection, LAST)
    answered = await post(endpoint, send("4", immediate=True))
    task = json.loads(answered.body)["result"]["task"]["id"]
    while _read(connection, MADE, last) < 31:  # noqa: ASYNC110 - another process makes them
        await asyncio.sleep(0.05)
    before, begun = _read(connection, COMMITS), time.perf_counter()
    with Cost(target) as cost:
        await post(endpoint, rpc("CancelTask", {"id": task}))
        while _read(connection, OPEN):  # noqa: ASYNC110 - another process ends them
            await asyncio.sleep(0.05)
    return time.perf_counter() - begun, cost.server_cpu, _read(connection, COMMITS) - before


def _read(connection: psycopg.Connection[Any], query: str, *values: object) -> int:
    row = connection.execute(query.encode(), values).fetchone()
    return int(row[0]) if row else 0


def main() -> int:
    """Measure."""
    parser = argparse.ArgumentParser(prog="python -m lab.bench.trees", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="part of a name")
    args = parser.parse_args()
    with server_of_run() as server:
        uvloop.run(measure(server, args.rounds, args.only))
    return 0


if __name__ == "__main__":
    sys.exit(main())
