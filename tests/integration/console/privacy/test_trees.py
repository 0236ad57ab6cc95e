"""Trees of tasks that call each other: what an erasure beside holds means for the others."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_console.diagnosis.call_tree import read_tree
from a2a_console.privacy.erasure import Erasure, erase
from a2a_console.privacy.principal import Principal
from a2a_tasks.agents import Turn
from a2a_tasks.models import Delegation, Run, Task
from a2a_tasks.store import call_trees, legal_holds
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.legal_holds import HoldKind
from tests.integration.execution.test_call_trees import agents, states, work
from tests.support.execution.host import hosting, status_is
from tests.support.execution.waiting import until

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def local(settings: Any) -> None:
    settings.A2A_RUNS = "local"
    settings.A2A_POLL_SECONDS = 0.05
    settings.A2A_PARK_SECONDS = 0.0


async def call(turn: Turn) -> str:
    answer = await turn.call("level-1", "x")
    return f"{answer.state.word} {answer.task_id}"


async def call_next(turn: Turn) -> str:
    return (await turn.call("level-2", "x")).text


def erased() -> Erasure:
    (*_, done) = erase(Principal("user:alice"))
    return done


def is_parked() -> bool:
    return Run.objects.filter(awaits_calls=True).exists()


async def test_a_held_caller_and_what_it_has_called_go_on_beside_an_erasure() -> None:
    with agents(call, work) as client:
        async with hosting():
            task = await client.begin()
            await until(lambda: run_in_thread(is_parked))
            await run_in_thread(legal_holds.lay, HoldKind.TASK, task.id, "case 1")
            done = await run_in_thread(erased)
            assert (done.removed.tasks, done.left, done.cancelled) == (0, 2, 0)
            assert await run_in_thread(states) == ["working", "working"]


async def test_a_caller_whose_called_task_is_gone_goes_on_without_its_answer() -> None:
    with agents(call, work) as client:
        async with hosting():
            task = await client.begin()
            await until(lambda: run_in_thread(is_parked))
            await run_in_thread(Task.objects.filter(agent="level-1").delete)
            await run_in_thread(call_trees.look_at_all)
            await until(lambda: status_is("completed", task=task.id))
            found = await client.get(task.id)
    assert isinstance(found.artifacts, list)
    assert b"failed" in bytes(found.artifacts[0])


async def test_a_held_task_of_an_erased_caller_stays_cancelled() -> None:
    with agents(call, work) as client:
        async with hosting():
            await client.begin()
            await until(lambda: run_in_thread(is_parked))
            child = await run_in_thread(lambda: Task.objects.get(agent="level-1"))
            await run_in_thread(legal_holds.lay, HoldKind.TASK, child.public_id, "case 1")
            done = await run_in_thread(erased)
            assert (done.removed.tasks, done.left) == (1, 1)
            assert await run_in_thread(states) == ["canceled"]
            assert await run_in_thread(read_tree, child.pk) == []
            await run_in_thread(lambda: legal_holds.release(legal_holds.in_force().get().pk))
            done = await run_in_thread(erased)
            assert (done.removed.tasks, done.left) == (1, 0)
            assert await run_in_thread(Delegation.objects.count) == 0


async def test_a_tree_is_erased_while_all_of_it_goes_on() -> None:
    with agents(call, call_next, work) as client:
        async with hosting():
            await client.begin()
            waiting = Run.objects.filter(awaits_calls=True)
            await until(lambda: run_in_thread(lambda: waiting.count() == 2))
            done = await run_in_thread(erased)
            assert (done.removed.tasks, done.left) == (3, 0)
            assert await run_in_thread(Delegation.objects.count) == 0
            await run_in_thread(call_trees.look_at_all)
