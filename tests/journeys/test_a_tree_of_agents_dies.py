"""Agents call agents, and the process of all of them is killed at each step: every call has one task, every question one answer."""

from __future__ import annotations

import contextlib
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from a2a_tasks.failpoints import ArmedFailpoint
from a2a_tasks.models import Delegation, Event, Run, Task
from tests.journeys.fixtures import Ask
from tests.journeys.hosts import QUICK, web
from tests.journeys.waiting import eventually
from tests.journeys.wire import Plain, plain
from tests.support.thorough import THOROUGH

DONE, ASKS = "TASK_STATE_COMPLETED", "TASK_STATE_INPUT_REQUIRED"
#: One process does everything, on SQLite and on PostgreSQL.
ENVIRON = {**QUICK, "A2A_RUNS": "local", "A2A_PARK_SECONDS": "0"}
#: The steps at which the process is killed, each at one of its passes.
STEPS = [("call.accepted", 2), ("call.answered", 1), ("call.closing", 1)]
if THOROUGH:
    STEPS += [
        ("call.accepting", 1),
        ("call.accepting", 3),
        ("park.parked", 1),
        ("call.relaying", 1),
        ("call.relayed", 2),
        ("call.answering", 1),
        ("park.woken", 1),
        ("call.closed", 1),
    ]


class Story:
    """A task of the root of the tree, from host to host."""

    def __init__(self, directory: Path) -> None:
        self.failpoints = directory / "failpoints"
        self.failpoints.mkdir()
        self.environ = {**ENVIRON, "A2A_FAILPOINTS": str(self.failpoints)}

    def arm(self, name: str, nth: int) -> None:
        """Let a process be killed at this step."""
        self._armed = f"{name}-{nth}"
        armed = ArmedFailpoint(id=self._armed, name=name, action="kill", nth=nth)
        (self.failpoints / "armed").write_bytes(msgspec.json.encode(armed))

    @property
    def has_fired(self) -> bool:
        """Was a process killed?"""
        return (self.failpoints / f"fired-{self._armed}").exists()

    async def go_on(self, client: Plain, task: str) -> bool:
        """Answer the question of the leaf, when it is asked, until the task has ended; False once a process was killed."""

        async def look() -> dict[str, Any] | None:
            found = await client.get(task)
            return found if found["status"]["state"] in {DONE, ASKS} else None

        with contextlib.suppress(httpx.HTTPError):
            while True:
                found = await eventually(look, "the task asks, or has ended")
                if found["status"]["state"] == DONE:
                    return True
                await client.answer(task, "aisle")
        return False


async def begin(client: Plain, story: Story) -> str:
    """Begin the task, which may be lost with the process before anybody was told."""
    with contextlib.suppress(httpx.HTTPError):
        return await client.start("go")
    assert story.has_fired
    return ""


def count_rows() -> dict[str, Any]:
    """What came of it. For a thread with a connection."""
    asked = Event.objects.filter(state=ASKS).values_list("task__agent", flat=True)
    return {
        "tasks": sorted(Task.objects.values_list("agent", flat=True)),
        "states": set(Task.objects.values_list("state", flat=True)),
        "calls": Delegation.objects.count(),
        "open": Delegation.objects.filter(open=True).count(),
        "unfinished": Run.objects.filter(status__in=["queued", "running"]).count(),
        "asked": sorted(asked),
    }


def find_roots() -> list[str]:
    """The ids of the tasks of the root. For a thread with a connection."""
    return list(Task.objects.filter(agent="tree-root").values_list("public_id", flat=True))


def are_closed() -> bool:
    """Has all that was begun come to its end? For a thread with a connection."""
    rows = count_rows()
    return not (rows["open"] or rows["unfinished"])


def forget() -> None:
    """Remove what earlier stories have left. For a thread with a connection."""
    Task.objects.all().delete()


@pytest.mark.timeout(600)
async def test_wherever_it_dies_each_call_has_one_task(ask: Ask, tmp_path: Path) -> None:
    """The host on which the task of one step ends is the one that is killed at the next."""
    story = Story(tmp_path)
    with ExitStack() as hosts:
        host = hosts.enter_context(web(story.environ))
        for step, nth in STEPS:
            await ask(forget)
            story.arm(step, nth)
            async with plain(host.url, "tree-root") as client:
                task = await begin(client, story)
                if task:
                    await story.go_on(client, task)
            assert story.has_fired, step
            host = hosts.enter_context(web(story.environ))
            async with plain(host.url, "tree-root") as client:
                if not task:
                    (task,) = await ask(find_roots)
                assert await story.go_on(client, task), step
                await eventually(lambda: ask(are_closed), "all calls are closed")
                found = await client.get(task)
            assert found["artifacts"][-1]["parts"] == [{"text": "quick; seat: aisle"}], step
            rows = await ask(count_rows)
            assert rows["tasks"] == ["tree-leaf", "tree-middle", "tree-quick", "tree-root"], step
            assert rows["states"] == {DONE}, step
            assert rows["calls"] == 3, step
            assert rows["asked"] == ["tree-leaf", "tree-middle", "tree-root"], step
