"""`python -m lab.bench.parked`: thousands of parked runs and one worker, in memory and in time.

The agents take a step, sleep until one moment for all, and take another step (`lab.bench.waiters`). The table has the rows
that are parked, the memory of the worker before and after (resident, of its process), and the seconds until all have
ended, from the moment of waking. `--tasks` is their number, `--slots` that of the worker.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from typing import Any

import psycopg
import uvloop

from lab.bench import procs
from lab.bench.postgres import Server
from lab.bench.procs import say
from lab.bench.targets import OursWorker, server_of_run
from lab.bench.waiting import OUTCOME, measure_cpu_share, read_row, send_all

PARKED = """select count(*) from a2a_tasks_run r where r.id > %s and r.status = 'queued' and r.round >= 4611686018427387904
and r.started_at is not null"""
OPEN = "select count(*) from a2a_tasks_run where id > %s and ended_at is null"
SIZE = "select pg_total_relation_size('a2a_tasks_run')"
#: Tasks before the first measurement, twice as many as slots: threads, connections and caches are there.
WARM = 1000


class ParkingHost(OursWorker):
    """The host with a worker of few slots, whose agents are parked."""

    name = "ours-parked"

    def __init__(self, server: Server, slots: int) -> None:
        super().__init__(server)
        self._slots = slots

    def env(self, redis: str = "") -> dict[str, str]:
        """The settings of its processes."""
        of_waiters = super().env(redis)
        del of_waiters["A2A_PARK_SECONDS"]
        return {**of_waiters, "A2A_RUN_SLOTS": str(self._slots)}


async def measure(server: Server, args: argparse.Namespace) -> None:
    """Park the runs, wake them, and print the table."""
    target = ParkingHost(server, args.slots)
    target.prepare()
    async with target.up():
        with psycopg.connect(target.database, autocommit=True) as connection:
            await _park(target, connection, WARM, seconds=60)
            rows = await _park(target, connection, args.tasks, seconds=args.seconds)
    print("| | |\n| --- | --- |")
    for name, value in rows.items():
        print(f"| {name} | {value} |")


async def _park(
    target: ParkingHost, connection: psycopg.Connection[Any], count: int, *, seconds: float
) -> dict[str, str]:
    worker, endpoint = target.worker.pid, target.at("waiter")
    (last,) = read_row(connection, "select coalesce(max(id), 0) from a2a_tasks_run")
    before, size = _rss(worker), read_row(connection, SIZE)[0]
    until = time.time() + seconds
    say(f"{count} tasks, until {time.strftime('%H:%M:%S', time.localtime(until))}")
    begun = time.time()
    await send_all(endpoint, count, f"steps {until}")
    sent = time.time() - begun
    while read_row(connection, PARKED, last)[0] < count:
        if time.time() > until:
            raise procs.Failed("not all runs were parked when the first of them was due")
        await asyncio.sleep(0.2)
    parked, grown = time.time() - begun, read_row(connection, SIZE)[0] - size
    share, after = await measure_cpu_share(worker, 10), _rss(worker)
    await asyncio.sleep(max(0.0, until - time.time()))
    most = after
    while read_row(connection, OPEN, last)[0]:
        most = max(most, _rss(worker))
        await asyncio.sleep(0.2)
    _, ended, again = read_row(connection, OUTCOME, last)
    return {
        "runs parked, rows": f"{count}",
        "KiB of table and indexes a run": f"{grown / count / 1024:.1f}",
        "s to send all, and until all were parked": f"{sent:.1f}, {parked:.1f}",
        "worker's RSS before, MiB": f"{before:.1f}",
        "worker's RSS with all parked, MiB": f"{after:.1f} ({after - before:+.1f})",
        "worker's CPU with all parked, % of a core": f"{100 * share:.1f}",
        "s until all had ended after they were due": f"{ended - until:.1f}",
        "worker's RSS at most meanwhile, MiB": f"{most:.1f}",
        "attempts more than one": f"{again}",
    }


def _rss(pid: int) -> float:
    """The resident memory of a process, in MiB."""
    rows = (procs.PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    return sum(int(row.split()[1]) for row in rows if row.startswith("Rss:")) / 1024


def main() -> int:
    """Measure."""
    parser = argparse.ArgumentParser(prog="python -m lab.bench.parked", description=__doc__)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--slots", type=int, default=500, help="of the one worker")
    parser.add_argument("--seconds", type=float, default=240, help="until the moment of waking")
    args = parser.parse_args()
    with server_of_run() as server:
        uvloop.run(measure(server, args))
    return 0


if __name__ == "__main__":
    sys.exit(main())
