"""What is as large as it may be ends, can be cancelled and read, and hurts nobody beside it: a real worker at default settings."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import pytest

from lab.outages.host import ENDED, Host
from tests.support.execution.waiting import eventually
from tests.support.proxy import Behaviour

pytestmark = [pytest.mark.backend("stack"), pytest.mark.timeout(500)]
MIB = 1024 * 1024
#: Most that a process may have had, in bytes.
MEMORY = 1024 * MIB
#: A bystander's time is compared with at least so many seconds: less is this machine's noise.
LEAST = 1.0
#: Times as long may a small task take beside a large one: they share two cores. Behind it, it would take minutes.
WAITED = 6
CANCEL = """
import sys, django
django.setup()
from a2a_tasks.models import Task
from a2a_tasks.store.cancel import cancel_by_key
print(cancel_by_key(Task.objects.get(public_id=sys.argv[1]).pk).status.state)
"""
READ = """
import asyncio, sys, django
django.setup()
from a2a_tasks.caller import OwnerScope
from a2a_tasks.store.tasks import find_batched
found = asyncio.run(find_batched((OwnerScope("", "user:alice", sys.argv[1]), sys.argv[2])))
print(sum(len(raw) for raw in found.view.artifacts))
"""


def most_memory(host: Host) -> int:
    """Most that the worker has had in memory, in bytes."""
    status = Path(f"/proc/{host.worker.pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def bystanders(host: Host, name: str, number: int = 7) -> float:
    """Send small tasks one after the other; the median of the seconds each took."""
    took = []
    for n in range(number):
        since = time.monotonic()
        host.send("good", "0", f"{name}-{n}")
        eventually(lambda n=n: host.states(f"{name}-{n}") == {"TASK_STATE_COMPLETED"}, 60)  # type: ignore[misc]
        took.append(time.monotonic() - since)
    return statistics.median(took)


def test_an_artifact_of_the_largest_size_ends_and_nobody_waits_for_it(host: Host) -> None:
    alone = bystanders(host, "before")
    host.send("speaker", f"15 {4 * MIB} 0", "large")
    beside = bystanders(host, "beside")
    eventually(lambda: host.states("large") <= ENDED, 120)
    assert host.states("large") == {"TASK_STATE_COMPLETED"}
    assert host.rows("select max(attempt) from a2a_tasks_run") == [(1,)]
    assert int(host.run("-c", READ, "speaker", "large")) > 60 * MIB
    assert beside <= WAITED * max(alone, LEAST)
    assert most_memory(host) <= MEMORY


@pytest.mark.parametrize("text", [f"1 {64 * MIB - 1000} 0", f"64 {MIB - 1000} 0"])
def test_one_of_the_largest_size_is_written_and_read_over_a_slow_link(
    host: Host, text: str
) -> None:
    host.way.behave(Behaviour(rate=10_000_000))
    host.send("speaker", text, "large")
    assert bystanders(host, "beside", 3) <= WAITED * LEAST
    eventually(lambda: host.states("large") <= ENDED, 120)
    assert host.states("large") == {"TASK_STATE_COMPLETED"}
    assert host.rows("select max(attempt) from a2a_tasks_run") == [(1,)]
    written = "select sum(octet_length(body)) > 60 * 1024 * 1024 from a2a_tasks_event"
    assert host.rows(written) == [(True,)]
    assert int(host.run("-c", READ, "speaker", "large")) > 60 * MIB


def test_a_run_that_was_lost_reads_its_large_steps_over_a_slow_link(host: Host) -> None:
    host.way.behave(Behaviour(rate=10_000_000))
    host.send("walker", f"8 {8 * MIB - 1000}", "large")
    eventually(lambda: host.states("large") <= ENDED, 240)
    assert host.states("large") == {"TASK_STATE_COMPLETED"}
    assert host.rows("select max(attempt) from a2a_tasks_run") == [(2,)]


def test_one_of_very_many_pieces_ends_and_can_be_read(host: Host) -> None:
    alone = bystanders(host, "before")
    host.send("speaker", "200000 8 0", "many")
    beside = bystanders(host, "beside")
    eventually(lambda: host.states("many") <= ENDED, 240)
    assert host.states("many") == {"TASK_STATE_COMPLETED"}
    eventually(
        lambda: host.rows("select count(*) from a2a_tasks_artifact where body = ''") == [(0,)], 60
    )
    assert int(host.run("-c", READ, "speaker", "many")) > 200_000 * 8
    assert host.rows("select max(attempt) from a2a_tasks_run") == [(1,)]
    assert beside <= WAITED * max(alone, LEAST)
    assert most_memory(host) <= MEMORY


def test_one_that_grows_is_cancelled_at_once(host: Host) -> None:
    host.send("speaker", f"15 {4 * MIB} 0.5", "large")
    eventually(
        lambda: host.rows("select count(*) from a2a_tasks_event where number > 5") != [(0,)], 60
    )
    since = time.monotonic()
    assert "CANCELED" in host.run("-c", CANCEL, "large")
    assert time.monotonic() - since < 10  # with the start of a Python
    eventually(lambda: host.leases() == 0, 20)


def test_a_dozen_results_of_40_mb_are_all_written_and_nobody_waits_for_them(host: Host) -> None:
    alone = bystanders(host, "before")
    host.send("maker", f"5 {8 * MIB}", *(f"large-{n}" for n in range(12)))
    beside = bystanders(host, "beside")
    eventually(lambda: host.states("large-%") <= ENDED, 240)
    assert host.states("large-%") == {"TASK_STATE_COMPLETED"}
    assert host.rows("select max(attempt) from a2a_tasks_run") == [(1,)]
    assert beside <= WAITED * max(alone, LEAST)
    assert most_memory(host) <= MEMORY
