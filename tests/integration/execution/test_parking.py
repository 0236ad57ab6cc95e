"""Parked runs: an agent that waits long holds no slot, and goes on as if it had never stopped."""

from __future__ import annotations

import asyncio
import datetime
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import msgspec
import pytest
from django.db.models.functions import Now

from a2a_tasks.agents import Turn
from a2a_tasks.agents.steps import Journal
from a2a_tasks.caller import Caller, OwnerScope
from a2a_tasks.execution import journal
from a2a_tasks.models import PARKED, Event, Run, Step, Task
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.protocol.lifecycle import EventKind
from a2a_tasks.protocol.values import Artifact, TaskState
from a2a_tasks.store import cancel, parking
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.tasks import find_by_key
from tests.support.agents_under_test import playing
from tests.support.execution.host import Client, due, hosting, runner, status_is, take_away
from tests.support.execution.waiting import until

pytestmark = pytest.mark.django_db
HOUR = 3600.0


@pytest.fixture(autouse=True)
def local(settings: Any) -> None:
    """Let runs be this process's own, and every sleep of more than a moment be a long one."""
    settings.A2A_RUNS = "local"
    settings.A2A_POLL_SECONDS = 0.05
    settings.A2A_PARK_SECONDS = 0.05


def parked(task: str = "task-1", part: str = "") -> bool:
    """Is the task's newest run parked, in this step? For a thread with a connection."""
    run = Run.objects.filter(task__public_id=task).latest("pk")
    return run.is_parked and part in run.parked_in


async def is_parked(task: str = "task-1") -> bool:
    """Is it?"""
    return await run_in_thread(parked, task)


async def carry_until_parked(part: str) -> None:
    """Carry the run, by a process of its own, until it is parked in this step."""
    async with runner() as made:
        await until(lambda: run_in_thread(parked, part=part))
        await until(lambda: not made.runs_in_process)


def pass_the_hour() -> None:
    """Let all sleeps end. For a thread with a connection."""
    for step in Step.objects.filter(name__startswith="sleep"):
        step.result = str(float(step.result) - HOUR)
        step.save()
    Run.objects.filter(round__gte=PARKED).update(due_at=Now())


def kinds() -> list[int]:
    """The kinds of the events after the message, in order."""
    return list(Event.objects.order_by("number").values_list("kind", flat=True))[1:]


def artifacts() -> list[str]:
    """The texts of the artifacts of the only task."""
    found = find_by_key(Task.objects.get().pk)
    assert found is not None
    assert isinstance(found.view.artifacts, list)
    decode = msgspec.json.Decoder(Artifact).decode
    whole = [decode(bytes(raw)) for raw in found.view.artifacts]
    return ["".join(str(part.text) for part in one.parts) for one in whole]


class Works:
    """Steps that are counted."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.attempts: list[int] = []

    def take(self, name: str) -> str:
        """Take a step."""
        self.calls[name] += 1
        return name

    async def later(self, turn: Turn) -> AsyncIterator[Any]:
        """An async agent."""
        self.attempts.append(turn.attempt)
        yield turn.working("I begin.")
        page = turn.stream()
        yield page.write("one ")
        yield "a"
        await turn.step("first", self.take, "first")
        yield turn.tool_call("1", "wait", {})
        await turn.sleep(HOUR, name="sleep 1")
        yield "b"
        yield page.write("two ")
        await turn.step("second", self.take, "second")
        await turn.sleep(HOUR, name="sleep 2")
        yield page.write("three", last=True)
        yield "c"

    def in_thread(self, turn: Turn) -> Iterator[Any]:
        """A synchronous one that does the same."""
        self.attempts.append(turn.attempt)
        yield turn.working("I begin.")
        page = turn.stream()
        yield page.write("one ")
        yield "a"
        turn.step("first", self.take, "first").now()
        yield turn.tool_call("1", "wait", {})
        turn.sleep(HOUR, name="sleep 1").now()
        yield "b"
        yield page.write("two ")
        turn.step("second", self.take, "second").now()
        turn.sleep(HOUR, name="sleep 2").now()
        yield page.write("three", last=True)
        yield "c"


@pytest.mark.parametrize("kind", ["later", "in_thread"])
async def test_an_agent_that_sleeps_long_holds_no_slot_and_goes_on_where_it_was(kind: str) -> None:
    works = Works()
    with playing(getattr(works, kind)) as agent:
        await due(agent.slug)
        for part in ("sleep 1", "sleep 2"):
            await carry_until_parked(part)  # each part is carried by another process
            await run_in_thread(pass_the_hour)
        async with runner():
            await until(lambda: status_is("completed"))
    assert works.attempts == [1, 1, 1]
    assert works.calls == {"first": 1, "second": 1}
    run = await run_in_thread(Run.objects.get)
    assert (run.attempt, run.deaths, run.error) == (1, 0, "")
    assert await run_in_thread(artifacts) == ["one two three", "abc"]
    status, piece, tool = EventKind.STATUS, EventKind.ARTIFACT, EventKind.TOOL
    assert await run_in_thread(kinds) == [
        *(status, status, piece, piece, tool, piece, piece, piece, piece, status)
    ]


async def test_a_short_wait_stays_in_memory(settings: Any) -> None:
    settings.A2A_PARK_SECONDS = 5.0
    called = list[int]()

    async def agent(turn: Turn) -> str:
        called.append(1)
        await turn.sleep(0.01)
        return "done"

    with playing(agent) as played:
        await due(played.slug)
        async with runner():
            await until(lambda: status_is("completed"))
    assert called == [1]
    assert (await run_in_thread(Run.objects.get)).parked_in == ""


async def asleep() -> bool:
    """Has the sleep begun?"""
    return await run_in_thread(Step.objects.filter(name="sleep").exists)


async def stays_in_memory(agent: Callable[..., Any], **attributes: Any) -> None:
    """Check that a run is not parked, and ends when its sleep is cut short by a cancel."""
    pauses = list[float]()

    async def pause(_: Journal, seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.sleep(seconds)

    with playing(agent, **attributes) as played, pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "pause", pause)
        await due(played.slug)
        async with runner() as made:
            # It would be parked before a pause: a short one, or the one for all the time that is left.
            await until(lambda: len(pauses) >= 3 or sum(pauses) > HOUR / 2)
            assert (made.runs_in_process, await is_parked()) == (1, False)
            await run_in_thread(cancel.cancel, OwnerScope("", "user:alice", played.slug), "task-1")


async def test_an_agent_that_must_not_act_twice_waits_in_memory() -> None:
    async def agent(turn: Turn) -> None:
        await turn.sleep(HOUR)

    await stays_in_memory(agent, after_crash="fail")


async def test_an_agent_that_sleeps_beside_its_own_work_waits_in_memory() -> None:
    async def agent(turn: Turn) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.Event().wait())

            async def sleep() -> None:
                await turn.sleep(HOUR)

            group.create_task(sleep())

    await stays_in_memory(agent)


async def test_an_agent_that_sleeps_beside_a_step_is_parked_after_the_step() -> None:
    go, calls = asyncio.Event(), list[str]()

    async def work() -> str:
        calls.append("work")
        await go.wait()
        return "done"

    async def take(turn: Turn) -> Any:
        return await turn.step("work", work)

    async def agent(turn: Turn) -> str:
        step = asyncio.ensure_future(take(turn))
        await turn.sleep(HOUR)
        return str(await step)

    with playing(agent) as played:
        await due(played.slug)
        async with runner():
            await until(asleep)
            assert not await is_parked()
            go.set()
            await until(is_parked)
            await run_in_thread(pass_the_hour)
            await until(lambda: status_is("completed"))
    assert calls == ["work"]


async def test_an_agent_that_has_asked_is_not_parked() -> None:
    async def agent(turn: Turn) -> AsyncIterator[Any]:
        yield turn.ask("Which one?")
        await turn.sleep(HOUR)

    await stays_in_memory(agent)


async def test_a_cancel_ends_a_parked_task_at_once_and_nobody_wakes_it() -> None:
    works = Works()
    with playing(works.later) as agent:
        await due(agent.slug)
        async with runner():
            await until(is_parked)
            await run_in_thread(cancel.cancel, OwnerScope("", "user:alice", agent.slug), "task-1")
            assert await status_is("canceled")
            await run_in_thread(pass_the_hour)
            await run_in_thread(parking.wake)
    assert (await run_in_thread(Run.objects.get)).status == "canceled"
    assert works.attempts == [1]


async def test_later_messages_of_the_conversation_wait_for_a_parked_run() -> None:
    order = list[str]()

    async def agent(turn: Turn) -> str:
        if turn.text == "first":
            await turn.sleep(HOUR)
        order.append(turn.text)
        return turn.text

    with playing(agent, one_at_a_time="context") as played:
        await due(played.slug, text="first", ordered=True)
        async with runner():
            await until(is_parked)
            await due(played.slug, "task-2", text="second", ordered=True)
            await due(played.slug, "task-3", text="other", ordered=True, context_id="context-2")
            await until(lambda: status_is("completed", task="task-3"))
            assert order == ["other"]
            await run_in_thread(pass_the_hour)
            await until(lambda: status_is("completed", task="task-2"))
    assert order == ["other", "first", "second"]


async def test_a_death_after_the_wake_repeats_nothing_that_came_before_it() -> None:
    going, works = asyncio.Event(), Works()

    async def agent(turn: Turn) -> AsyncIterator[Any]:
        yield turn.artifact("before")
        await turn.step("first", works.take, "first")
        await turn.sleep(HOUR)
        yield turn.artifact(f"after {turn.attempt}", name="after")
        if turn.attempt == 1:
            going.set()
            await asyncio.Event().wait()

    with playing(agent) as played:
        await due(played.slug)
        async with runner():
            await until(is_parked)
            await run_in_thread(pass_the_hour)
            await asyncio.wait_for(going.wait(), 20)
            await run_in_thread(take_away)
            await until(lambda: status_is("completed"))
    assert await run_in_thread(artifacts) == ["before", "after 2"]
    assert works.calls == {"first": 1}


async def test_an_outage_while_it_is_parked_is_waited_out(monkeypatch: pytest.MonkeyPatch) -> None:
    tries, real = list[bool](), parking.park

    def away(asked: parking.Parking) -> None:
        tries.append(True)
        if len(tries) == 1:
            raise Overloaded
        if len(tries) == 2:
            real(asked)
            raise Overloaded  # nobody confirmed the commit
        real(asked)

    monkeypatch.setattr(journal, "park", away)
    works = Works()
    with playing(works.later) as agent:
        await due(agent.slug)
        async with runner() as made:
            await until(is_parked)
            await until(lambda: not made.runs_in_process)
    assert len(tries) >= 2
    assert (await run_in_thread(Run.objects.get)).attempt == 0


async def test_a_moment_can_be_given_for_the_end_of_a_sleep() -> None:
    moment = datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC)

    async def agent(turn: Turn) -> None:
        await turn.sleep(moment)

    with playing(agent) as played:
        await due(played.slug)
        async with runner():
            await until(is_parked)
    assert (await run_in_thread(Run.objects.get)).due_at == moment


@pytest.mark.backend("sqlite")  # the clock of its only process is the database's
async def test_a_clock_that_is_set_back_makes_no_sleep_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def agent(turn: Turn) -> str:
        await turn.sleep(HOUR)
        return "done"

    own = time.time
    with playing(agent) as played:
        await due(played.slug)
        async with runner():
            await until(is_parked)
            before = await run_in_thread(Run.objects.get)
            with monkeypatch.context() as clocks:
                clocks.setattr(time, "time", lambda: own() - HOUR)
                earlier = before.due_at - datetime.timedelta(seconds=HOUR / 2)
                moved = Run.objects.filter(due_at__lt=earlier)
                await until(lambda: run_in_thread(moved.exists))
            await until(lambda: status_is("completed"))  # an hour is over


class Waiting:
    """An agent that waits for the task that it is told, or, told none, until it may go."""

    def __init__(self, seconds: float = HOUR) -> None:
        self.go, self.states, self.seconds = threading.Event(), list[TaskState](), seconds

    async def agent(self, turn: Turn) -> str:
        """Wait."""
        if turn.text:
            self.states.append(await turn.wait_for(turn.text, seconds=self.seconds))
        else:
            await asyncio.to_thread(self.go.wait, 60)
        return "done"

    def in_thread(self, turn: Turn) -> str:
        """Wait in a thread."""
        if turn.text:
            self.states.append(turn.wait_for(turn.text, seconds=self.seconds).now())
        else:
            self.go.wait(60)
        return "done"


class TestWaitingForATask:
    async def test_that_ends_soon_stays_in_memory(self, settings: Any) -> None:
        settings.A2A_PARK_SECONDS = 60.0
        waiting = Waiting()
        with playing(waiting.agent) as played:
            async with hosting():
                client = Client(played)
                long = await client.begin("")
                waits = await client.begin(long.id)
                await until(lambda: run_in_thread(Step.objects.exists))
                waiting.go.set()
                await until(lambda: status_is("completed", task=waits.id))
        assert waiting.states == [TaskState.COMPLETED]
        assert (await run_in_thread(Run.objects.latest, "pk")).parked_in == ""

    @pytest.mark.parametrize("kind", ["agent", "in_thread"])
    async def test_parks_the_run_until_that_task_ends(self, kind: str) -> None:
        waiting = Waiting()
        with playing(getattr(waiting, kind)) as played:
            async with hosting():
                client = Client(played)
                long = await client.begin("")
                waits = await client.begin(long.id)
                await until(lambda: is_parked(waits.id))
                waiting.go.set()
                await until(lambda: status_is("completed", task=waits.id))
        assert waiting.states == [TaskState.COMPLETED]

    async def test_ends_with_its_time(self) -> None:
        waiting = Waiting(seconds=0.3)
        with playing(waiting.agent) as played:
            async with hosting():
                client = Client(played)
                waits = await client.begin((await client.begin("")).id)
                await until(lambda: status_is("completed", task=waits.id))
                waiting.go.set()
        assert waiting.states == [TaskState.WORKING]

    async def test_of_somebody_else_fails(self) -> None:
        waiting = Waiting()
        with playing(waiting.agent) as played:
            async with hosting():
                long = await Client(played, Caller(principal="user:bob")).begin("")
                waits = await Client(played).send(long.id)
                waiting.go.set()
        assert waits.status.state is TaskState.FAILED
        assert "There is no task" in bytes(waits.status.message or b"").decode()
