"""An agent lets nothing else happen for longer than a lease: it keeps its task or loses it, and never are there two writers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys.hosts import QUICK, web, worker
from tests.journeys.trace import Trace
from tests.journeys.wire import Plain, plain

pytestmark = pytest.mark.backend("stack")
COMPLETED = "TASK_STATE_COMPLETED"
#: Shorter than what the agents hold, and long enough for the heart of a busy machine.
PATIENT = {**QUICK, "A2A_LEASE_SECONDS": "4"}
#: Seconds for which the agents hold what they hold.
HELD = 8


@pytest.fixture(scope="module")
def url(emptied: None) -> Iterator[str]:
    """A host with two workers, whose leases are shorter than what the agents hold."""
    with (
        web(PATIENT) as site,
        worker(1, PATIENT, queues="doomed"),
        worker(2, PATIENT, queues="doomed"),
    ):
        yield site.url


async def told(client: Plain, task: str) -> list[str]:
    """The artifacts in the log, in order."""
    events = [event.said for event in await client.log(task)]
    return [e["artifactUpdate"]["artifact"]["name"] for e in events if "artifactUpdate" in e]


def attempt(name: str) -> int:
    """Which attempt an artifact is of."""
    return int(name.rpartition(" ")[2])


@pytest.mark.parametrize(
    ("agent", "held"),
    [("hog", "loop"), ("process-hog", "loop"), ("process-hog", "interpreter")],
)
async def test_its_lease_is_kept_while_another_thread_can_run(
    url: str, agent: str, held: str, tmp_path: Path
) -> None:
    """The heart beats in a thread, which needs the interpreter; and in the runner's process, not the agent's."""
    async with plain(url, agent) as client:
        task = await client.start(f"{held} {HELD} {tmp_path / 'trace'}")
        await client.until(task, COMPLETED)
        assert await told(client, task) == ["before 1", "after 1"]


async def test_who_holds_the_interpreter_is_replaced_and_writes_nothing_more(
    url: str, tmp_path: Path
) -> None:
    trace = Trace(tmp_path / "trace")
    async with plain(url, "hog") as client:
        task = await client.start(f"interpreter {HELD} {trace.path}")
        await client.until(task, COMPLETED)
        first, *later = await told(client, task)
        assert first == "before 1"
        assert later == sorted(later, key=attempt), "a worker that lost the task has written"
        assert attempt(later[0]) > 1
        await trace.of("closed-1")
        assert await told(client, task) == [first, *later]
