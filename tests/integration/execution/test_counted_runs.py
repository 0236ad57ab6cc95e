"""What `/metrics` has of runs: why their attempts began, how they ended, the steps they replayed, what models used."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from django.db.models.functions import Now

from a2a_tasks.agents import AgentError, Turn
from a2a_tasks.execution import journal
from a2a_tasks.models import Run, RunStatus
from a2a_tasks.store import parking as parking_store
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.parking import Parking
from tests.support.agents_under_test import playing
from tests.support.execution.host import (
    Client,
    client_state,
    due,
    hosting,
    not_carried,
    runner,
    status_is,
    take_away,
)
from tests.support.execution.waiting import until
from tests.support.metrics import samples

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]


@pytest.fixture(autouse=True)
def local(settings: Any) -> None:
    """Let runs be this process's own, and every sleep of more than a moment be a long one."""
    settings.A2A_RUNS = "local"
    settings.A2A_POLL_SECONDS = settings.A2A_PARK_SECONDS = 0.05


def whys(slug: str) -> dict[str, int]:
    """The attempts at runs of an agent by their reason."""
    return {why: int(n) for (why,), n in samples("a2a_run_attempts_total", agent=slug).items()}


def outcomes(slug: str) -> dict[str, int]:
    """The attempts that ended, by outcome."""
    return {how: int(n) for (how,), n in samples("a2a_run_seconds_count", agent=slug).items()}


async def hanging(turn: Turn) -> AsyncIterator[Any]:
    """Work without end."""
    yield turn.working()
    await asyncio.Event().wait()


class TestAttempts:
    @pytest.mark.parametrize(
        ("text", "outcome"), [("well", "ended"), ("badly", "failed"), ("not", "failed")]
    )
    async def test_that_end_count_by_how_the_agent_ended(self, text: str, outcome: str) -> None:
        def run(turn: Turn) -> Any:
            if turn.text == "badly":
                raise AgentError("It is broken.")
            return "fine" if turn.text == "well" else turn.fail("No.")

        with playing(run) as agent:
            async with hosting():
                await Client(agent).send(text)
                await until(not_carried)
            assert (whys(agent.slug), outcomes(agent.slug)) == ({"first": 1}, {outcome: 1})

    async def test_that_are_cancelled_say_so(self) -> None:
        with playing(hanging) as agent:
            client = Client(agent)
            async with hosting():
                task = await client.begin()
                await until(lambda: client_state(client, task.id, "working"))
                await client.cancel(task.id)
                await until(not_carried)
            assert outcomes(agent.slug) == {"canceled": 1}

    async def test_after_a_park_are_woken_and_replay_the_steps_before_it(self) -> None:
        async def run(turn: Turn) -> str:
            await turn.step("pay", lambda: "receipt")
            await turn.sleep(0.2)
            return "done"

        with playing(run) as agent:
            await due(agent.slug)
            async with runner():
                await until(lambda: status_is("completed"))
            assert whys(agent.slug) == {"first": 1, "woken": 1}
            assert outcomes(agent.slug) == {"parked": 1, "ended": 1}
            assert samples("a2a_step_replayed_total", agent=agent.slug) == {(): 2}

    async def test_that_are_parked_are_not_taken_for_lost_by_who_misses_their_lease(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A heartbeat may look between the commit and its answer."""

        async def run(turn: Turn) -> str:
            await turn.sleep(0.2)
            return "done"

        async with runner() as made:
            lost: list[Any] = []

            def park(parking: Parking) -> bool:
                parked = parking_store.park(parking)
                (carried,) = made._active.values()
                made._leases._miss(carried)
                lost.append(carried)
                return parked

            monkeypatch.setattr(journal, "park", park)
            with playing(run) as agent:
                await due(agent.slug)
                await until(lambda: outcomes(agent.slug) == {"parked": 1, "ended": 1}, 20)
        assert [carried.fenced for carried in lost] == [False]

    async def test_of_a_process_that_stopped_are_handed_back(self) -> None:
        async def run(turn: Turn) -> AsyncIterator[Any]:
            yield turn.working()
            if len(begun) == 1:
                await asyncio.Event().wait()

        begun = [1]
        with playing(run) as agent:
            await due(agent.slug)
            async with runner():
                await until(lambda: status_is("working"))
            begun.append(2)
            async with runner():
                await until(lambda: status_is("completed"))
            assert whys(agent.slug) == {"first": 1, "handed_back": 1}
            assert outcomes(agent.slug) == {"handed_back": 1, "ended": 1}

    @pytest.mark.parametrize(("deaths", "why"), [(1, "crash"), (2, "quarantine")])
    async def test_after_a_death_are_crashes(self, deaths: int, why: str) -> None:
        with playing(lambda turn: "x") as agent:
            await due(agent.slug)
            dead = {"status": RunStatus.QUEUED, "attempt": deaths, "shared_deaths": deaths}
            await run_in_thread(Run.objects.update, **dead, due_at=Now(), started_at=Now())
            async with runner():
                await until(lambda: status_is("completed"))
            assert whys(agent.slug) == {why: 1}

    async def test_of_an_agent_that_is_gone_do_not_name_it(self, settings: Any) -> None:
        settings.A2A_ORPHAN_SECONDS = settings.A2A_PRESENCE_SECONDS = 0
        before = samples("a2a_run_seconds_count")
        await due("gone-agent")
        async with runner():
            await until(lambda: status_is("failed"))
        assert samples("a2a_run_seconds_count") - before == {("others", "failed"): 1}


class TestUsage:
    async def test_is_counted_once_for_each_report(self) -> None:
        def report(turn: Turn) -> None:
            turn.usage(model="large", input_tokens=10, output_tokens=5, cost=0.5)

        async def run(turn: Turn) -> str:
            await turn.step("think", report, turn)
            if turn.attempt == 1:
                begun.set()
                await asyncio.Event().wait()
            turn.usage(model="small", input_tokens=1)
            return "done"

        begun = asyncio.Event()
        with playing(run) as agent:
            await due(agent.slug)
            async with runner():
                await begun.wait()
                await run_in_thread(take_away)
                await until(lambda: status_is("completed"))
            used = ("large", "input"), ("large", "output"), ("small", "input")
            tokens = samples("a2a_tokens_total", agent=agent.slug)
            assert tokens == dict(zip(used, (10, 5, 1), strict=True))
            assert samples("a2a_cost_total", agent=agent.slug) == {("large", "USD"): 0.5}
