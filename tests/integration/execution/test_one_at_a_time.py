"""`one_at_a_time = "context"`: the runs of a conversation wait for each other, whichever process takes them."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from a2a_frameworks.shared.base import FrameworkAgent
from a2a_tasks.agents import Agent, Turn
from a2a_tasks.caller import Caller
from a2a_tasks.models import Run
from a2a_tasks.store.cancel import cancel_by_key
from a2a_tasks.store.db import run_in_thread
from tests.support.agents_under_test import playing
from tests.support.execution.host import Client, due, hosting, runner, status_is, take_away
from tests.support.execution.waiting import until

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]


@pytest.fixture(autouse=True)
def hints_only(settings: Any) -> None:
    """What begins, begins because of a hint: nobody polls in time."""
    settings.A2A_RUNS = "local"
    settings.A2A_POLL_SECONDS = 600.0


class Gate:
    """An agent whose turns note that they begin, and wait until they are let go."""

    def __init__(self) -> None:
        self.begun: list[tuple[str, int]] = []
        self.at_work = self.most = 0
        self.go = asyncio.Event()

    async def run(self, turn: Turn) -> str:
        self.begun.append((turn.text, turn.attempt))
        self.at_work += 1
        self.most = max(self.most, self.at_work)
        try:
            await self.go.wait()
        finally:
            self.at_work -= 1
        return turn.text


@pytest.mark.django_db(transaction=True)
async def test_two_processes_answer_a_conversation_in_order_and_another_beside_it() -> None:
    begun, lock = list[str](), threading.Lock()
    at_work, most = {"one": 0, "two": 0}, {"one": 0, "two": 0}
    both = threading.Barrier(2)

    def run(turn: Turn) -> str:
        name = turn.context_id
        with lock:
            begun.append(turn.task_id)
            at_work[name] += 1
            most[name] = max(most[name], at_work[name])
        both.wait(30)  # one turn of each conversation is at work
        with lock:
            at_work[name] -= 1
        return "x"

    with playing(run, one_at_a_time="context") as agent:
        for number in range(5):
            for context in ("one", "two"):
                task = f"{context}-{number}"
                await due(agent.slug, task, context_id=context, ordered=True)
        async with runner(), runner():
            await until(lambda: status_is("completed", task="one-4"))
            await until(lambda: status_is("completed", task="two-4"))
    assert most == {"one": 1, "two": 1}
    for context in ("one", "two"):
        mine = [task for task in begun if task.startswith(context)]
        assert mine == [f"{context}-{number}" for number in range(5)]


async def test_the_next_message_begins_when_the_earlier_one_is_answered() -> None:
    gate = Gate()
    with playing(gate.run, one_at_a_time="context") as agent:
        async with hosting():
            alice, bob = Client(agent), Client(agent, Caller(principal="user:bob"))
            first = await alice.begin("first")
            await until(lambda: gate.begun == [("first", 1)])
            second = await alice.begin("second", context_id=first.context_id)
            await bob.begin("bob", context_id=first.context_id)
            await until(lambda: ("bob", 1) in gate.begun)
            assert len(gate.begun) == 2
            gate.go.set()
            await until(lambda: status_is("completed", task=second.id))
    assert gate.begun == [("first", 1), ("bob", 1), ("second", 1)]
    rounds = await run_in_thread(list, Run.objects.order_by("pk").values_list("round", flat=True))
    assert rounds[0] == 0, "a new conversation begins at once, without a queue"


async def test_the_next_message_begins_when_the_earlier_task_is_cancelled() -> None:
    gate = Gate()
    with playing(gate.run, one_at_a_time="context") as agent:
        await due(agent.slug, "a", ordered=True, text="a")
        await due(agent.slug, "b", ordered=True, text="b")
        async with runner(), runner():
            await until(lambda: gate.begun == [("a", 1)])
            key = (await run_in_thread(Run.objects.get, task__public_id="a")).task_id
            await run_in_thread(cancel_by_key, key)
            await until(lambda: gate.begun == [("a", 1), ("b", 1)])
            gate.go.set()
            await until(lambda: status_is("completed", task="b"))


async def test_after_a_crash_the_earlier_message_is_answered_before_the_next_one() -> None:
    gate = Gate()
    with playing(gate.run, one_at_a_time="context") as agent:
        await due(agent.slug, "a", ordered=True, text="a")
        await due(agent.slug, "b", ordered=True, text="b")
        async with runner(), runner():
            await until(lambda: gate.begun == [("a", 1)])
            await run_in_thread(take_away, "a")
            await until(lambda: gate.begun == [("a", 1), ("a", 2)])
            gate.go.set()
            await until(lambda: status_is("completed", task="b"))
    assert gate.begun == [("a", 1), ("a", 2), ("b", 1)]
    assert await status_is("completed", task="a")


async def test_a_failed_turn_lets_the_next_one_begin() -> None:
    async def run(turn: Turn) -> str:
        if turn.text == "a":
            raise ValueError("no")
        return "x"

    with playing(run, one_at_a_time="context") as agent:
        await due(agent.slug, "a", ordered=True, text="a")
        await due(agent.slug, "b", ordered=True, text="b")
        async with runner():
            await until(lambda: status_is("completed", task="b"))
    assert await status_is("failed", task="a")


def test_agents_of_frameworks_answer_a_conversation_one_at_a_time() -> None:
    assert FrameworkAgent.one_at_a_time == "context"
    assert Agent.one_at_a_time == ""
