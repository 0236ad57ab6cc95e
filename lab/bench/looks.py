"""`python -m lab.bench.looks`: what the look for parked callers costs each second and process, with a million tasks.

Fills a database of its own: so many callers are parked, each for one call. The table has the milliseconds of a look, of
this process (median and p95, wall clock and CPU) with nothing to find, and with the ends of the last 30 s. Below it stand, with
and without parked callers, the times of blocking sends by 8 clients and the memory of the worker.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable
from statistics import median, quantiles
from typing import Any

import psycopg

from lab.bench import client, procs
from lab.bench.lists import fill_database
from lab.bench.postgres import Server
from lab.bench.procs import say
from lab.bench.targets import OursCelery, server_of_run

#: Looks of one line of the table; clients that send, and the sends of each.
TIMES, CLIENTS, SENDS = 20, 8, 250
PARK = """
with pair as (select i as parent, i + %(parked)s as child from generate_series(1, %(parked)s::bigint) i),
going as (
  update a2a_tasks_task t set state = 'TASK_STATE_WORKING', status_at = now() from pair
  where t.id in (pair.parent, pair.child)),
run as (
  insert into a2a_tasks_run (task_id, input_number, queue, agent, status, attempt, token, worker, lease_seconds, round,
    parked_in, awaits_calls, due_at, request, error, started_at)
  select parent, 1, 'agents', 'demo', 'queued', 0, '', '', 0, 4611686018427387904,
    'call x: answer', true, now() + interval '1 day', '{}', '', now() from pair)
insert into a2a_tasks_delegation (child_id, parent_id, input_number, name, root, depth, path, questions, at_end,
  "open", awaited, cancel)
select child, parent, 1, 'call x', parent, 1, '["demo"]', 'relay', 'cancel', true, true, false from pair
"""
#: Tasks of others end; each of these statements ends so many in one go.
END = """update a2a_tasks_task set state = 'TASK_STATE_COMPLETED', status_at = now() - random() * interval '30 seconds'
where id > %(first)s and id <= %(first)s + %(count)s"""


def measure(server: Server, size: int, parked: int) -> None:
    """Measure, and print the table."""
    url = fill_database(server, size)
    from a2a_tasks.store import call_trees, parking  # noqa: PLC0415 - Django is set up by the fill

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("analyze")
        say("no agent calls another one")
        print("| | median ms | p95 ms | median CPU ms |\n| --- | --- | --- | --- |")
        _time("look, no calls", call_trees.look)
        rows = [asyncio.run(_serve(server, url, "no calls"))]
        connection.execute(PARK.encode(), {"parked": parked})
        connection.execute("vacuum analyze")
        say(f"{parked:,} callers are parked")
        rows.append(asyncio.run(_serve(server, url, f"{parked:,} parked")))
        _time(f"look, {parked:,} parked", call_trees.look)
        _time(f"wake, {parked:,} parked", parking.wake)
        _explain(connection)
        first = 2 * parked
        for count in (300, 3_000):
            connection.execute(END.encode(), {"first": first, "count": count})
            first += count
            _time(f"look, {count:,} ends of others in 30 s", call_trees.look, 20)
        begun = time.perf_counter()
        call_trees.look_at_all()
        print(f"| the look at all, once a minute | {1e3 * (time.perf_counter() - begun):.1f} | | |")
        print("\n| blocking sends | p50 ms | p99 ms | worker MiB |\n| --- | --- | --- | --- |")
        print("\n".join(rows))


async def _serve(server: Server, url: str, name: str) -> str:
    """Send to a host on the database. Return a row of the table."""
    host = OursCelery(server)
    host.database = url
    times: list[float] = []

    async def send() -> None:
        for _ in range(SENDS):
            begun = time.perf_counter()
            await client.echo(host.endpoint)
            times.append(1e3 * (time.perf_counter() - begun))

    async with host.up():
        await asyncio.gather(*(send() for _ in range(CLIENTS)))
        memory = procs.memory_kib(procs.tree([host.worker.pid])) / 1024
    cuts = quantiles(times, n=100)
    return f"| {name} | {cuts[49]:.1f} | {cuts[98]:.1f} | {memory:.1f} |"


def _explain(connection: psycopg.Connection[Any]) -> None:
    """Print what PostgreSQL reads for the statement of a look, which does not depend on the machine."""
    from a2a_tasks.store.backend.call_news import FIND  # noqa: PLC0415 - as above

    explain = f"explain (analyze, buffers) {FIND}"
    values = {"recent": 5.0, "after": 0, "most": 1000}
    plan = [str(row) for (row,) in connection.execute(explain.encode(), values)]
    told = [line.strip() for line in plan if "Buffers" in line][:1]
    told += [line.strip() for line in plan if "Seq Scan" in line or "Execution" in line]
    say("; ".join(told))


def _time(name: str, look: Callable[[], object], times: int = TIMES) -> None:
    look()
    walls, cpus = [], []
    for _ in range(times):
        wall, cpu = time.perf_counter(), time.process_time()
        look()
        walls.append(1e3 * (time.perf_counter() - wall))
        cpus.append(1e3 * (time.process_time() - cpu))
    p95 = quantiles(walls, n=20)[-1]
    print(f"| {name} | {median(walls):.2f} | {p95:.2f} | {median(cpus):.2f} |", flush=True)


def main() -> int:
    """Measure."""
    parser = argparse.ArgumentParser(prog="python -m lab.bench.looks", description=__doc__)
    parser.add_argument("--size", type=int, default=1_000_000, help="tasks")
    parser.add_argument("--parked", type=int, default=10_000)
    args = parser.parse_args()
    with server_of_run() as server:
        measure(server, args.size, args.parked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
