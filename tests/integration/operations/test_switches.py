"""Switches where messages are accepted: limits are kept by who accepts and runs in one process, queues are chosen."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from a2a_project.operations import TABLE
from a2a_tasks.access import switch_cache
from a2a_tasks.agents import Agent, Turn
from a2a_tasks.agents import switches as known
from a2a_tasks.models import AgentSwitch, Run
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store import switches
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.switches import SwitchState
from tests.support.agents_under_test import playing
from tests.support.execution.host import Client, client_state, hosting, runner
from tests.support.execution.waiting import until

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
async def local(settings: Any, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Let runs be this process's own, and nothing stay switched."""
    settings.A2A_RUNS = "local"
    settings.A2A_POLL_SECONDS = 0.1
    monkeypatch.setattr(
        switch_cache, "PATIENCE_SECONDS", 20.0
    )  # a busy machine is slow now and then
    switch_cache.forget()
    async with hosting():
        yield
    switch_cache.forget()


@pytest.fixture
def gate() -> asyncio.Event:
    """Until it is set, agents wait."""
    return asyncio.Event()


@pytest.fixture
def agent(gate: asyncio.Event) -> Iterator[Agent]:
    async def run(turn: Turn) -> AsyncIterator[Any]:
        yield turn.working("at work")
        await gate.wait()
        yield "x"

    with playing(run) as made:
        yield made


async def switch(work: Any, *args: Any) -> None:
    """Set it, and know it."""
    await run_in_thread(work, *args)
    await switch_cache.fresh()


async def queues() -> set[str]:
    return await run_in_thread(lambda: set(Run.objects.values_list("queue", flat=True)))


async def test_of_an_agent_with_a_limit_no_more_runs_are_under_way(
    agent: Agent, gate: asyncio.Event
) -> None:
    client = Client(agent)
    await switch(switches.limit, agent.slug, 2)
    tasks = [await client.begin() for _ in range(4)]

    async def two() -> bool:
        return await run_in_thread(Run.objects.filter(status="running").count) == 2

    await until(two)
    states = [await client.states(task.id) for task in tasks]
    assert sorted(states) == ["submitted", "submitted", "working", "working"]
    gate.set()
    for task in tasks:
        await until(functools.partial(client_state, client, task.id, "completed"))


async def test_runs_wait_in_the_queue_that_was_chosen(agent: Agent, gate: asyncio.Event) -> None:
    gate.set()
    client = Client(agent)
    await switch(switches.move, agent.slug, "night")
    assert (await client.send()).status.state.word == "completed"
    assert await queues() == {"night"}


async def test_a_process_of_other_queues_leaves_them_alone(
    agent: Agent, gate: asyncio.Event, settings: Any
) -> None:
    settings.A2A_RUNS = "celery"
    gate.set()
    await switch(switches.move, agent.slug, "night")
    task = await Client(agent).begin()
    async with runner("agents") as made:
        await made.ready.wait()
        assert await Client(agent).states(task.id) == "submitted"
        async with runner("night"):
            await until(lambda: client_state(Client(agent), task.id, "completed"))


async def test_a_message_known_by_its_key_is_answered_while_the_agent_drains(
    agent: Agent, gate: asyncio.Event
) -> None:
    gate.set()
    client = Client(agent)
    call = client.call(idempotency_key="k")
    request = client.request("hello")
    first: Any = await TABLE["SendMessage"](request, call)
    await switch(switches.set_state, agent.slug, SwitchState.DRAINING)
    again: Any = await TABLE["SendMessage"](request, call)
    assert again.id == first.id
    with pytest.raises(Overloaded):
        await client.send()


class TestKnowing:
    async def test_what_was_switched_is_known_at_once_in_the_process_that_hears_of_it(self) -> None:
        await switch_cache.fresh()
        await run_in_thread(switches.set_state, "demo", SwitchState.DRAINING)
        await switch_cache.fresh()
        assert known.is_draining("demo")

    async def test_what_is_heard_while_it_is_read_is_read_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The switch may have come after what the read saw."""
        found = switches.read_switches

        def switched_meanwhile() -> Any:
            seen = found()
            switches.set_state("demo", SwitchState.OFF)
            return seen

        monkeypatch.setattr(switches, "read_switches", switched_meanwhile)
        await switch_cache.fresh()
        assert known.off() == set()
        monkeypatch.setattr(switches, "read_switches", found)
        await switch_cache.fresh()
        assert known.off() == {"demo"}

    async def test_what_another_process_switched_is_known_a_little_later(
        self, settings: Any
    ) -> None:
        await switch_cache.fresh()
        await run_in_thread(AgentSwitch.objects.create, slug="demo", state="off", by="x")
        await switch_cache.fresh()
        assert known.off() == set()
        settings.A2A_CREDENTIAL_SECONDS = 0.0  # which forgets as time does
        await switch_cache.fresh()
        assert known.off() == {"demo"}

    async def test_while_the_database_is_away_what_was_known_stays(
        self, monkeypatch: pytest.MonkeyPatch, settings: Any
    ) -> None:
        settings.A2A_CREDENTIAL_SECONDS = 0.0
        await run_in_thread(switches.set_state, "demo", SwitchState.OFF)
        await switch_cache.fresh()

        def away() -> Any:
            raise Overloaded

        monkeypatch.setattr(switches, "read_switches", away)
        await switch_cache.fresh()
        assert known.off() == {"demo"}

    async def test_nobody_waits_for_it_for_long(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(switch_cache, "PATIENCE_SECONDS", 0.05)
        silent = asyncio.Event()

        async def never(_: Any) -> Any:
            await silent.wait()
            return {}

        monkeypatch.setattr(switch_cache, "run_in_thread", never)
        async with asyncio.timeout(10):
            await asyncio.gather(*(switch_cache.fresh() for _ in range(3)))
        silent.set()
