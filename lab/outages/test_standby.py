"""With synchronous replication nothing is acknowledged that no standby has: a real primary, a real standby, a failover."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.outages.host import Host
from lab.outages.standby import PRIMARY, Standby
from tests.support.execution.waiting import eventually

pytestmark = [pytest.mark.backend("stack"), pytest.mark.timeout(300)]
#: Accept one task after the other, and carry each half way; every acknowledgement is a line: task, event, text.
WRITE = """
import asyncio, sys, django
django.setup()
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store.accept import accept_batched
from a2a_tasks.store.append import append_batched
from a2a_tasks.store.records import PreclaimedLease, new_token
from tests.support.store.world import Pen, chunk, new

async def main(name, most):
    for n in range(most):
        hold = PreclaimedLease(new_token(), "writer:1", 600)
        try:
            taken = await accept_batched(new(f"{name}-{n}", text="hello", lease=hold))
            print(f"{name}-{n}", taken.number, "accepted", flush=True)
            for number in range(2):
                last = await append_batched(Pen(taken.claimed_run).batch(chunk("a", f"{name} {number}")))
                print(f"{name}-{n}", last, f"{name} {number}", flush=True)
        except Overloaded as away:
            print("refused", away.undone, flush=True)

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A database that may have standbys, with the tables; no worker."""
    made = Host(tmp_path, settings=PRIMARY)
    try:
        with made.way:
            made.run("-m", "django", "migrate", "-v", "0")
            yield made
    finally:
        made.close()


def synchronous(host: Host) -> None:
    """Have every commit wait for a standby."""
    host.postgres.execute("alter system set synchronous_standby_names = '*'")
    host.postgres.execute("select pg_reload_conf()")


def test_without_its_standby_nothing_is_acknowledged(host: Host) -> None:
    synchronous(host)
    told = host.run("-c", WRITE, "late", "2").splitlines()
    assert told[0] == "refused False", "nobody knows what becomes of it"
    assert all(line.startswith("refused") for line in told)
    assert "might not have been replicated" not in host.postgres.log


def test_after_a_failover_nothing_acknowledged_is_gone_and_no_number_is_given_twice(
    host: Host,
) -> None:
    standby = Standby(host.postgres)
    try:
        standby.start()
        synchronous(host)
        waits = "select count(*) from pg_stat_replication where sync_state = 'sync'"
        eventually(lambda: host.rows(waits) == [(1,)], 30)
        with subprocess.Popen(  # noqa: S603 - ours
            [sys.executable, "-c", WRITE, "one", "100000"],
            env=host.environ,
            stdout=subprocess.PIPE,
            text=True,
        ) as writer:
            assert writer.stdout
            told = [writer.stdout.readline() for _ in range(300)]
            host.postgres.kill()
            writer.kill()
            told += [line for line in writer.stdout if line.endswith("\n")]
        standby.promote()
        host.environ["DATABASE_URL"] = standby.url("outage")
        after = host.run("-c", WRITE, "two", "50").splitlines(keepends=True)
        assert len(after) == 150
        rows = standby.execute(
            "select t.public_id, e.number, e.body from a2a_tasks_event e join a2a_tasks_task t on t.id = e.task_id",
            "outage",
        )
        bodies = {(task, number): body for task, number, body in rows}
        for line in filter(lambda line: not line.startswith("refused"), told + after):
            task, number, text = line.strip().split(" ", 2)
            assert text == "accepted" or f'"text":"{text}"' in bodies[task, int(number)]
            assert (task, int(number)) in bodies
    finally:
        standby.close()
