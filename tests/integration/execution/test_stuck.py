"""Why tasks are stuck, told of real ones: agents at work, asleep and asking, workers killed, lines, cancels."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from a2a_console.diagnosis.reasons import Diagnosis, DiagnosisKind, diagnose
from a2a_console.search.task_reference import parse_task_reference
from a2a_tasks.agents import Turn
from a2a_tasks.caller import OwnerScope
from a2a_tasks.store import cancel
from a2a_tasks.store.db import run_in_thread
from tests.support.agents_under_test import playing, until_stopped
from tests.support.execution.host import due, runner
from tests.support.execution.waiting import until

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]


async def why(task: str = "task-1") -> Diagnosis:
    """Ask."""
    (key,) = await run_in_thread(parse_task_reference, task)
    return await run_in_thread(diagnose, key)


async def stands(kind: DiagnosisKind, task: str = "task-1") -> bool:
    """Is this why?"""
    return (await why(task)).kind == kind


async def naps(turn: Turn) -> AsyncIterator[Any]:
    """An agent that sleeps for an hour."""
    yield turn.working()
    await turn.sleep(3600, name="night")


async def asks(turn: Turn) -> AsyncIterator[Any]:
    """An agent that asks."""
    yield turn.ask("Which one?")


class TestARunner:
    async def test_that_is_at_work_is_named(self) -> None:
        with playing(until_stopped(asyncio.Event())) as agent:
            await due(agent.slug)
            async with runner() as made:
                await until(lambda: stands(DiagnosisKind.WORKING))
                assert made.worker in (await why()).sentence

    async def test_whose_agent_sleeps_long_has_parked_it_and_says_until_when(self) -> None:
        with playing(naps) as agent:
            await due(agent.slug)
            async with runner():
                await until(lambda: stands(DiagnosisKind.PARKED))
                assert "in the step night for another 59 min" in (await why()).sentence
            assert (await why()).kind == DiagnosisKind.PARKED

    async def test_whose_agent_sleeps_in_memory_says_until_when(self) -> None:
        with playing(naps, after_crash="fail") as agent:
            await due(agent.slug)
            async with runner():
                await until(lambda: stands(DiagnosisKind.SLEEPING))
                said = await why()
                assert "in the step night for another 59 min" in said.sentence
                assert said.at is not None

    async def test_whose_agent_asks_waits_for_its_client(self) -> None:
        with playing(asks) as agent:
            await due(agent.slug)
            async with runner():
                await until(lambda: stands(DiagnosisKind.INPUT))
                await until(lambda: _ended_its_turn())

    async def test_without_room_has_the_others_wait_in_line(self) -> None:
        with playing(until_stopped(asyncio.Event())) as agent:
            async with runner(slots=1):
                await due(agent.slug)
                await until(lambda: stands(DiagnosisKind.WORKING))
                for number in range(2, 5):
                    await due(agent.slug, f"task-{number}")
                assert "2 runs are ahead in the queue agents" in (await why("task-4")).sentence

    async def test_that_has_ended_leaves_its_runs_due(self) -> None:
        with playing(until_stopped(asyncio.Event())) as agent:
            await due(agent.slug)
            async with runner():
                await until(lambda: stands(DiagnosisKind.WORKING))
            assert (await why()).kind == DiagnosisKind.DUE


async def _ended_its_turn() -> bool:
    return "has not ended its turn" not in (await why()).sentence


class TestACancel:
    async def test_of_an_agent_at_work_says_that_it_is_being_stopped(self) -> None:
        with playing(until_stopped(asyncio.Event())) as agent:
            await due(agent.slug)
            async with runner():
                await until(lambda: stands(DiagnosisKind.WORKING))
                await run_in_thread(
                    cancel.cancel, OwnerScope("", "user:alice", agent.slug), "task-1"
                )
                assert (await why()).kind == DiagnosisKind.STOPPING
