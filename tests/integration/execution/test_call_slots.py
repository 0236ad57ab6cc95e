"""Waits for other agents cost no slots: chains of agents that are longer than a process has slots and threads."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from a2a_tasks.agents import CallRefused, Turn
from a2a_tasks.execution import slots
from a2a_tasks.models import Delegation, Run, Task
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.db import run_in_thread
from tests.support.agents_under_test import playing
from tests.support.execution.host import Client, hosting, status_is
from tests.support.execution.waiting import until
from tests.support.thorough import examples, thorough

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]
DEPTH = examples(4, quick=3)


@pytest.fixture(autouse=True)
def two_slots(settings: Any) -> None:
    """Let this process execute two runs, and two threads."""
    settings.A2A_RUNS = "local"
    settings.A2A_POLL_SECONDS = 0.05
    settings.A2A_RUN_SLOTS = 2
    settings.A2A_AGENT_THREADS = 2


def below(turn: Turn) -> str:
    """The agent that this one calls: the message says how deep to go."""
    return f"level-{int(turn.text)}"


async def call_one(turn: Turn) -> str:
    """Call the next agent."""
    if turn.text == "0":
        return "leaf"
    return (await turn.call(below(turn), str(int(turn.text) - 1))).text


def call_one_in_thread(turn: Turn) -> str:
    """Do so in a thread."""
    if turn.text == "0":
        return "leaf"
    return turn.call(below(turn), str(int(turn.text) - 1)).now().text


async def call_two(turn: Turn) -> str:
    """Call the next agent twice."""
    if turn.text == "0":
        return "leaf"
    one, two = (turn.call(below(turn), str(int(turn.text) - 1), name=name) for name in "ab")
    first, second = await turn.gather(one, two)
    return f"{first.text} {second.text}"


async def call_two_by_asyncio(turn: Turn) -> str:
    """Call it twice, without a gather of the turn."""
    if turn.text == "0":
        return "leaf"

    async def call(name: str) -> str:
        return (await turn.call(below(turn), str(int(turn.text) - 1), name=name)).text

    return " ".join(await asyncio.gather(call("a"), call("b")))


async def call_in_step(turn: Turn) -> str:
    """Call it in a step, as a tool of a framework is one."""
    return str(await turn.step("tool", call_one, turn))


def call_in_thread_of_a_step(turn: Turn) -> Any:
    """Call it in the thread of a step."""
    return turn.step("tool", call_one_in_thread, turn)


async def wait_for_one(turn: Turn) -> str:
    """Wait for a task that another agent was given, in a step."""
    return await call_one(turn)


@contextlib.contextmanager
def chain(run: Callable[[Turn], Any], **attributes: Any) -> Iterator[Client]:
    """Host agents that call each other, and return the client of the first."""
    with contextlib.ExitStack() as stack:
        for level in range(1, DEPTH + 1):
            agent = stack.enter_context(
                playing(run, slug=f"level-{level}", calls="*", **attributes)
            )
        first = stack.enter_context(playing(run, slug="first", calls="*", **attributes))
        assert agent is not None
        yield Client(first)


@pytest.mark.parametrize(
    ("run", "attributes", "leaves", "park"),
    [
        (call_one, {}, 1, 0.0),
        thorough(call_one, {}, 1, 5.0),
        (call_one, {"after_crash": "fail"}, 1, 5.0),
        thorough(call_one, {"after_crash": "fail"}, 1, 0.0),
        (call_one_in_thread, {}, 1, 5.0),
        thorough(call_one_in_thread, {}, 1, 0.0),
        (call_one_in_thread, {"after_crash": "fail"}, 1, 0.0),
        thorough(call_one_in_thread, {"after_crash": "fail"}, 1, 5.0),
        (call_in_step, {}, 1, 0.0),
        thorough(call_in_step, {}, 1, 5.0),
        (call_two, {}, 2**DEPTH, 5.0),
        thorough(call_two, {}, 2**DEPTH, 0.0),
        thorough(call_two_by_asyncio, {}, 2**DEPTH, 5.0),
        (call_two_by_asyncio, {}, 2**DEPTH, 0.0),
    ],
)
async def test_a_chain_ends_that_is_longer_than_there_are_slots(
    run: Callable[[Turn], Any],
    attributes: dict[str, Any],
    leaves: int,
    park: float,
    settings: Any,
) -> None:
    settings.A2A_PARK_SECONDS = park
    with chain(run, **attributes) as client:
        async with hosting():
            task = await client.send(str(DEPTH))
    assert task.status.state is TaskState.COMPLETED
    assert isinstance(task.artifacts, list)
    assert bytes(task.artifacts[0]).count(b"leaf") == leaves
    per_level = 2 if leaves > 1 else 1
    made = sum(per_level**level for level in range(DEPTH + 1))
    assert await run_in_thread(Task.objects.count) == made


async def test_a_gather_is_parked_once_and_woken_once(settings: Any) -> None:
    settings.A2A_PARK_SECONDS = 0.0
    go, begun = [asyncio.Event() for _ in range(3)], list[int]()

    async def wait(turn: Turn) -> str:
        await go[int(turn.text)].wait()
        return turn.text

    async def plan(turn: Turn) -> str:
        begun.append(1)
        calls = [turn.call("worker", str(number), name=str(number)) for number in range(3)]
        return "".join([answer.text for answer in await turn.gather(*calls)])

    settings.A2A_RUN_SLOTS = 4
    with playing(wait, slug="worker"), playing(plan, calls="*") as planner:
        async with hosting():
            client = Client(planner)
            task = await client.begin()
            for number in (2, 0, 1):
                await until(lambda: run_in_thread(is_parked, task.id))
                assert len(begun) == 1
                go[number].set()
                child = await run_in_thread(find_child, str(number))
                await until(functools.partial(status_is, "completed", task=child))
            await until(lambda: status_is("completed", task=task.id))
    assert begun == [1, 1]


def is_parked(task: str) -> bool:
    """Is the task's run parked for its calls? For a thread with a connection."""
    run = Run.objects.filter(task__public_id=task).latest("pk")
    return run.is_parked and run.awaits_calls


def find_child(name: str) -> str:
    """The id of the task of a call. For a thread with a connection."""
    return Delegation.objects.get(name=name).child.public_id


async def test_a_process_with_too_many_waiting_agents_refuses_a_call_of_one_that_cannot_be_parked(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.A2A_RUN_SLOTS = 1
    monkeypatch.setattr(slots, "MIN_WAITING", 1)
    go, words = asyncio.Event(), list[str]()

    async def wait(turn: Turn) -> None:
        await go.wait()

    async def plan(turn: Turn) -> None:
        try:
            await turn.call("worker" if turn.text == "first" else "other", "x")
        except CallRefused as refused:
            words.append(str(refused))

    with (
        playing(wait, slug="worker"),
        playing(wait, slug="other"),
        playing(plan, calls="*", after_crash="fail", slug="planner") as planner,
    ):
        settings.A2A_RUN_SLOTS = 3
        async with hosting():
            client = Client(planner)
            settings.A2A_RUN_SLOTS = 1
            first = await client.begin("first")
            await until(lambda: run_in_thread(Delegation.objects.exists))
            second = await client.begin("second")
            go.set()
            await until(lambda: status_is("completed", task=first.id))
            await until(lambda: status_is("completed", task=second.id))


async def test_a_wait_for_a_task_lends_its_slot_too(settings: Any) -> None:
    settings.A2A_RUN_SLOTS = 1
    go = threading.Event()

    async def wait(turn: Turn) -> str:
        return str(await turn.wait_for(turn.text, agent="worker"))

    async def work(turn: Turn) -> str:
        await asyncio.to_thread(go.wait, 60)
        return "done"

    with playing(work, slug="worker") as worker, playing(wait, after_crash="fail") as waiter:
        async with hosting():
            settings.A2A_RUN_SLOTS = 1
            client = Client(worker)
            long = await client.begin()
            waits = await Client(waiter).begin(long.id)
            go.set()
            await until(lambda: status_is("completed", task=waits.id))
