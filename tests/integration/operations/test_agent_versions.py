"""Which version of an agent gets a message: the one its conversation began with, whatever operators choose later."""

from __future__ import annotations

import datetime
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
import pytest

from a2a_console.rerun.run_again import run_again
from a2a_tasks.access import switch_cache
from a2a_tasks.agents import Agent, Turn, registry
from a2a_tasks.agents.declaration import declare
from a2a_tasks.models import AgentVersion, Context, Run, Task
from a2a_tasks.operations.backpressure import queue_limit
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import switches, versions, workers
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.workers import Beat, WorkerKind
from tests.support.agents_under_test import playing
from tests.support.execution.host import Client, hosting, runner

pytestmark = pytest.mark.django_db
LONG_AGO = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)


@pytest.fixture(autouse=True)
async def workers_run(settings: Any, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Let workers execute the runs, and nothing stay announced."""
    settings.A2A_RUNS = "celery"
    monkeypatch.setattr(switch_cache, "PATIENCE_SECONDS", 20.0)
    switch_cache.forget()
    async with hosting():
        yield
    switch_cache.forget()


@pytest.fixture
def agent() -> Iterator[Agent]:
    """An agent in the host's own code, of version 1.0.0, that asks whatever it is told."""

    async def run(turn: Turn) -> AsyncIterator[Any]:
        yield turn.ask("And?")

    with playing(run) as made:
        yield made


async def announce(agent: Agent, *names: str) -> None:
    """Let an environment have these versions of the agent, too."""
    own = declare(agent)
    for name in names:
        text = msgspec.json.encode(msgspec.structs.replace(own, version=name))
        await run_in_thread(versions.announce, text, environment="adk", host="0.1.0")
    await switch_cache.fresh()


async def switch(work: Any, *args: Any) -> None:
    """Set it, and know it."""
    await run_in_thread(work, *args)
    await switch_cache.fresh()


def work(*queues: str) -> None:
    """Have a worker that takes from these queues."""
    started = datetime.datetime.now(datetime.UTC)
    beat = Beat(
        name="there:1",
        kind=WorkerKind.WORKER,
        host="there",
        pid=1,
        started_at=started,
        queues=queues,
        slots=1,
    )
    workers.beat(beat)


async def queue_of(task: str) -> str:
    """The queue of the newest run of a task."""
    found = Run.objects.filter(task__public_id=task).order_by("-pk").values_list("queue", flat=True)
    return str(await run_in_thread(found.first))


async def version_of(context: str) -> str | None:
    """The version that a conversation is kept to."""
    return await run_in_thread(lambda: Context.objects.get(public_id=context).version)


async def test_an_agent_without_versions_keeps_no_conversation(agent: Agent) -> None:
    task = await Client(agent).begin()
    assert await queue_of(task.id) == "agents"
    assert await version_of(task.context_id or "") is None


async def test_a_conversation_stays_with_its_version_through_a_rollout(agent: Agent) -> None:
    client = Client(agent)
    old = await client.begin(context_id="from-before")
    await announce(agent, "2.0", "3.0")
    own = await client.begin(context_id="own")
    await switch(switches.serve, agent.slug, "2.0")
    second = await client.begin(context_id="second")
    await switch(switches.serve, agent.slug, "3.0")
    third = await client.begin()
    queues = [await queue_of(task.id) for task in (old, own, second, third)]
    wanted = ["agents", "agents", f"{agent.slug}@2.0", f"{agent.slug}@3.0"]
    assert queues == wanted
    again = [await client.begin(context_id=task.context_id) for task in (old, own, second, third)]
    assert [await queue_of(task.id) for task in again] == wanted
    assert await version_of("own") == ""
    assert await version_of("second") == "2.0"


async def test_an_answer_goes_to_the_version_that_has_asked(agent: Agent) -> None:
    client = Client(agent)
    await announce(agent, "2.0")
    task = await client.begin()
    async with runner("agents"):
        while (await client.get(task.id)).status.state is not TaskState.INPUT_REQUIRED:
            pass
    await switch(switches.serve, agent.slug, "2.0")
    await client.begin(task_id=task.id)
    assert await queue_of(task.id) == "agents"


async def test_an_answer_by_the_task_alone_goes_to_its_version(agent: Agent) -> None:
    client = Client(agent)
    await announce(agent, "2.0")
    await switch(switches.serve, agent.slug, "2.0")
    task = await client.begin()
    await switch(switches.serve, agent.slug, "")
    await client.begin(task_id=task.id)
    assert await queue_of(task.id) == f"{agent.slug}@2.0"


async def test_a_conversation_of_a_removed_version_waits_in_its_queue(agent: Agent) -> None:
    client = Client(agent)
    await announce(agent, "2.0")
    await switch(switches.serve, agent.slug, "2.0")
    task = await client.begin(context_id="kept")
    await run_in_thread(Run.objects.update, status="dropped")
    await run_in_thread(AgentVersion.objects.update, announced_at=LONG_AGO)
    await switch(versions.forget, agent.slug, "2.0")
    await announce(agent, "3.0")
    again = await client.begin(context_id="kept")
    assert await queue_of(again.id) == await queue_of(task.id) == f"{agent.slug}@2.0"


async def test_an_announced_agent_alone_is_served_and_its_runs_are_left_to_its_workers(
    agent: Agent, settings: Any
) -> None:
    settings.A2A_RUNS = "local"
    own = declare(agent)
    text = msgspec.json.encode(msgspec.structs.replace(own, slug="elsewhere", version="1.0"))
    await run_in_thread(versions.announce, text, environment="adk", host="0.1.0")
    await switch_cache.fresh()
    found = registry.find("elsewhere")
    assert found is not None
    task = await Client(found).begin()
    assert await queue_of(task.id) == "elsewhere@1.0"
    run = await run_in_thread(Run.objects.get)
    assert (run.status, run.worker) == ("queued", "")


async def test_a_task_run_again_stays_in_its_conversation(agent: Agent) -> None:
    client = Client(agent)
    await announce(agent, "2.0")
    await switch(switches.serve, agent.slug, "2.0")
    task = await client.begin()
    await client.cancel(task.id)
    await switch(switches.serve, agent.slug, "")
    key = await run_in_thread(lambda: Task.objects.get(public_id=task.id).pk)
    again = await run_again(key)
    assert await queue_of(again.id) == f"{agent.slug}@2.0"


async def test_tasks_that_clients_name_have_their_share_of_a_canary(agent: Agent) -> None:
    client = Client(agent)
    await announce(agent, "2.0")
    await run_in_thread(work, f"{agent.slug}@2.0")
    await switch(switches.set_canary, agent.slug, "2.0", 50)
    tasks = [await client.begin(named=f"task-{number}") for number in range(20)]
    queues = {await queue_of(task.id) for task in tasks}
    assert queues == {"agents", f"{agent.slug}@2.0"}


async def test_a_task_from_before_there_were_versions_keeps_the_one_that_its_first_answer_gets(
    agent: Agent,
) -> None:
    client = Client(agent)
    task = await client.begin(context_id="old")
    registry._found.pop(agent.slug)  # its code has moved to environments
    await announce(agent, "2.0", "3.0")
    await client.begin(task_id=task.id)
    first = await queue_of(task.id)
    other = "3.0" if first.endswith("2.0") else "2.0"
    await switch(switches.serve, agent.slug, other)
    await client.begin(task_id=task.id)
    again = await client.begin(context_id="old")
    assert await queue_of(task.id) == await queue_of(again.id) == first


async def test_a_conversation_of_a_version_that_is_not_served_any_more_stays_with_it(
    agent: Agent,
) -> None:
    client = Client(agent)
    await announce(agent, "2.0")
    await switch(switches.serve, agent.slug, "2.0")
    await client.begin(context_id="kept")
    await run_in_thread(AgentVersion.objects.update, host="99.0.0")
    switch_cache.forget()
    await switch_cache.fresh()
    again = await client.begin(context_id="kept")
    assert await queue_of(again.id) == f"{agent.slug}@2.0"
    assert await queue_of((await client.begin(context_id="new")).id) == "agents"


@pytest.mark.parametrize("answers", [True, False])
async def test_a_conversation_that_is_moved_at_this_moment_is_followed(
    agent: Agent, answers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(agent)
    await announce(agent, "2.0", "3.0")
    await switch(switches.serve, agent.slug, "2.0")
    task = await client.begin(context_id="kept")
    admit = queue_limit.admit

    async def move_then_admit(queue: str) -> None:
        """Move the conversation after its version was read."""
        if queue.endswith("@2.0"):
            await run_in_thread(versions.move_conversations, agent.slug, "2.0", "3.0")
        await admit(queue)

    monkeypatch.setattr(queue_limit, "admit", move_then_admit)
    about = {"task_id": task.id} if answers else {"context_id": "kept"}
    again = await client.begin(**about)
    assert await queue_of(again.id) == f"{agent.slug}@3.0"
    assert await version_of("kept") == "3.0"
    assert await run_in_thread(Run.objects.filter(queue__endswith="@2.0").count) == 0


async def test_the_version_that_answers_says_whether_its_runs_wait_for_each_other(
    agent: Agent,
) -> None:
    client = Client(agent)
    text = msgspec.structs.replace(declare(agent), version="2.0", one_at_a_time="context")
    await run_in_thread(
        versions.announce, msgspec.json.encode(text), environment="adk", host="0.1.0"
    )
    await switch(switches.serve, agent.slug, "2.0")
    await client.begin(context_id="kept")
    await switch(switches.serve, agent.slug, "")
    await client.begin(context_id="kept")
    await client.begin(context_id="new")
    ordered = await run_in_thread(
        lambda: list(Run.objects.order_by("pk").values_list("ordered_in"))
    )
    assert [context is not None for (context,) in ordered] == [True, True, False]
