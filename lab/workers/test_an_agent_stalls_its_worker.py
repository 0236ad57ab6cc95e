"""Agents let nothing else happen in their workers for longer than a lease: there are never two writers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.journeys.hosts import Host, Workers
from tests.journeys.trace import Trace
from tests.journeys.wire import Plain, plain

pytestmark = [pytest.mark.backend("stack"), pytest.mark.timeout(300)]
#: Seconds: longer than the leases of these workers, which are four. Who holds the interpreter is replaced before its agent goes on.
LOOP, INTERPRETER = 5, 8


async def told(client: Plain, task: str) -> list[str]:
    """The artifacts in the log, in order."""
    events = [event.said for event in await client.log(task)]
    return [e["artifactUpdate"]["artifact"]["name"] for e in events if "artifactUpdate" in e]


def attempt(name: str) -> int:
    """Which attempt an artifact is of."""
    return int(name.rpartition(" ")[2])


async def test_who_holds_the_loop_keeps_its_task_and_who_holds_the_interpreter_is_replaced(
    site: Host, workers: Workers, tmp_path: Path
) -> None:
    """The heart beats in a thread, which needs the interpreter."""
    workers.exactly(2)
    kept, lost = Trace(tmp_path / "loop"), Trace(tmp_path / "interpreter")
    async with plain(site.here, "hog") as client:
        first = await client.start(f"loop {LOOP} {kept.path}")
        await kept.of("began-1")  # its worker takes nothing more: the other one does
        second = await client.start(f"interpreter {INTERPRETER} {lost.path}")
        await client.until(first, "TASK_STATE_COMPLETED")
        assert await told(client, first) == ["before 1", "after 1"]
        await client.until(second, "TASK_STATE_COMPLETED")
        before, *later = await told(client, second)
        assert before == "before 1"
        assert later == sorted(later, key=attempt), "a worker that lost the task has written"
        assert attempt(later[0]) > 1
        await lost.of("closed-1")
        assert await told(client, second) == [before, *later]
