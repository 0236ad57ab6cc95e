"""The cost of an index for each change of a task: PostgreSQL's own time and log, with and without it, in turns.

    python -m lab.bench.index_cost [--database URL] [--rounds 60]

Two tables like that of tasks have 100,000 rows; one lacks the index of rare values (`a2a_console/sparse_index.py`). A thousand tasks arrive in
each, change twice, and a thousand old ones change; each statement's processor time is that of the server process (`/proc`),
so the server must be on this machine. Differences are taken pair by pair, since the machine's load moves both.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

import psycopg

from lab.bench.lists import fill_database, set_up
from lab.bench.postgres import Server

ROWS, FILLED = 1_000, 100_000
PLAIN, INDEXED = "bench_plain", "bench_indexed"
INSERT = """
insert into {table} (id, public_id, tenant, owner, agent, context_id, is_task, state, status_at, status_message, metadata, memory,
  last_event, run_token, origin_dialect, origin_binding, created_at)
select {first} + i, md5('{first}' || i), 'tenant-' || i % 300, 'key:' || i % 777, 'demo', i, true, 'TASK_STATE_SUBMITTED', now(), '', '',
  '', 1, '', 'v10', 'JSONRPC', now() from generate_series(1, {rows}) i
"""
UPDATE = """
update {table} set state = 'TASK_STATE_{state}', status_at = now(), last_event = last_event + 1
where id > {first} and id <= {first} + {rows}
"""
STEPS = ("arrives", "begins to work", "completes", "an old one changes")
#: Microseconds of processor time and bytes of the log, a row.
Cost = tuple[float, float]


class Meter:
    """A connection, and what its server process spends."""

    def __init__(self, url: str) -> None:
        self.connection = psycopg.connect(url, autocommit=True)
        self._spent = Path(f"/proc/{self.connection.info.backend_pid}/schedstat")

    def run(self, statement: str) -> None:
        """Run it, unmeasured."""
        self.connection.execute(statement.encode())

    def cost(self, statement: str) -> Cost:
        """Run it; return the cost per row: CPU time and bytes of log."""
        cpu, log = self._cpu(), self._log()
        self.run(statement)
        return (self._cpu() - cpu) / 1000 / ROWS, (self._log() - log) / ROWS

    def _cpu(self) -> int:
        return int(self._spent.read_text().split()[0])

    def _log(self) -> int:
        row = self.connection.execute("select pg_current_wal_insert_lsn() - '0/0'").fetchone()
        return int(row[0]) if row else 0


def prepare(meter: Meter) -> None:
    """Make the two tables."""
    for table in (PLAIN, INDEXED):
        meter.run(f"drop table if exists {table}")
        meter.run(f"create table {table} (like a2a_tasks_task including all)")
    found = meter.connection.execute(
        "select indexname from pg_indexes where tablename = %s and indexdef like '%%USING brin%%'",
        [PLAIN],
    ).fetchone()
    meter.run(f"drop index {found[0]}" if found else "select 1")
    for table in (PLAIN, INDEXED):
        meter.run(f"insert into {table} select * from a2a_tasks_task where id <= {FILLED}")
    meter.run(f"vacuum analyze {PLAIN}, {INDEXED}")


def life(meter: Meter, table: str, first: int) -> list[Cost]:
    """A thousand tasks, and as many old ones."""
    old = first % FILLED
    return [
        meter.cost(INSERT.format(table=table, first=first, rows=ROWS)),
        meter.cost(UPDATE.format(table=table, first=first, rows=ROWS, state="WORKING")),
        meter.cost(UPDATE.format(table=table, first=first, rows=ROWS, state="COMPLETED")),
        meter.cost(UPDATE.format(table=table, first=old, rows=ROWS, state="WORKING")),
    ]


def measure(url: str, rounds: int) -> None:
    """Take turns, and print the medians."""
    meter, lives = Meter(url), dict[str, list[list[Cost]]]()
    prepare(meter)
    for number in range(rounds):
        first = 10 * FILLED + number * ROWS
        for table in (PLAIN, INDEXED) if number % 2 else (INDEXED, PLAIN):
            lives.setdefault(table, []).append(life(meter, table, first))
        if number % 10 == 9:  # now and then, as autovacuum does
            meter.run(f"vacuum {PLAIN}, {INDEXED}")
            meter.run("checkpoint")
    print("| a task | µs without | µs with | difference | bytes of log without | with |")
    print("|---|---:|---:|---:|---:|---:|")
    for step, words in enumerate(STEPS):
        plain, indexed = ([one[step] for one in lives[table]] for table in (PLAIN, INDEXED))
        more = statistics.median(b[0] - a[0] for a, b in zip(plain, indexed, strict=True))
        cpu, log = ([statistics.median(c[n] for c in t) for t in (plain, indexed)] for n in (0, 1))
        print(
            f"| {words} | {cpu[0]:.1f} | {cpu[1]:.1f} | {more:+.2f} | {log[0]:.0f} | {log[1]:.0f} |"
        )
    meter.run(f"drop table {PLAIN}, {INDEXED}")


def main() -> int:
    """Fill, unless it is filled, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--database")
    args = parser.parse_args()
    if args.database:
        set_up(args.database)
        measure(args.database, args.rounds)
        return 0
    server = Server()
    try:
        measure(fill_database(server, FILLED), args.rounds)
    finally:
        server.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
