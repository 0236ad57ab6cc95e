"""Agents of the host as tools of a framework: a supervisor whose model delegates durably."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from a2a_frameworks import langgraph, openai_agents, pydantic_ai
from a2a_tasks.agents import Turn
from a2a_tasks.models import Delegation, Task
from a2a_tasks.store.db import run_in_thread
from tests.model_server import ModelServer
from tests.support.agents_under_test import playing
from tests.support.execution.host import (
    Client,
    client_state,
    hosting,
    take_away,
    tools_told,
)
from tests.support.execution.waiting import until
from tests.support.frameworks import hosted, status_text, text_of
from tests.support.model_frameworks import FRAMEWORKS, LANGGRAPH, OPENAI_AGENTS, PYDANTIC_AI
from tests.support.thorough import thorough

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]
TOOLS = {PYDANTIC_AI: pydantic_ai, OPENAI_AGENTS: openai_agents, LANGGRAPH: langgraph}
FORM = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
ONE = 'CALL billing {"message": "order 7"}\nSAY it is $RESULT'
TWO = 'CALL billing {"message": "7"} + CALL search {"message": "8"}\nSAY it is $RESULT'


def make(framework: Any, model: ModelServer, *slugs: str) -> Any:
    """A supervisor of a framework."""
    tools = TOOLS[framework].tools_for(*slugs)
    if framework is PYDANTIC_AI:
        return framework.make(model, toolsets=[tools])
    if framework is OPENAI_AGENTS:
        return framework.make(model, tools=tools)
    return framework.make(model, *tools)


@pytest.fixture(params=FRAMEWORKS, ids=repr)
def framework(request: pytest.FixtureRequest) -> Any:
    """A framework."""
    return request.param


@contextmanager
def supervising(
    framework: Any, model: ModelServer, calls: Any = "*", **callees: Callable[..., Any]
) -> Iterator[Client]:
    """Host a supervisor and the agents that it calls; return its client."""
    with ExitStack() as stack:
        for slug, run in callees.items():
            stack.enter_context(playing(run, slug=slug))
        thing = make(framework, model, "billing", "search")
        yield Client(stack.enter_context(hosted(thing, calls=calls)))


async def echo(turn: Turn) -> str:
    """Answer with what was asked."""
    return f"billing: {turn.text}"


async def ask(turn: Turn) -> Any:
    """Ask whether it is sure, and tell the answer."""
    answer = await turn.answer
    return turn.ask("Sure?", form=FORM) if answer is None else f"sure: {answer['sure']}"


def count(slug: str) -> int:
    """The number of an agent's tasks. For a thread with a connection."""
    return Task.objects.filter(agent=slug).count()


async def test_a_call_is_a_task_of_the_other_agent(framework: Any, model: ModelServer) -> None:
    with supervising(framework, model, billing=echo) as client:
        async with hosting():
            task = await client.send(ONE)
    assert text_of(task) == ["it is billing: order 7"]
    child = (await run_in_thread(Delegation.objects.select_related("child").get)).child
    call, result = await run_in_thread(tools_told, task.id)
    assert call["toolCall"]["name"] == "billing"
    assert call["toolCall"]["arguments"] == {"message": "order 7"}
    assert result["toolResult"] == {
        "id": call["toolCall"]["id"],
        "content": "billing: order 7",
        "error": False,
        "metadata": {"agent": "billing", "task": child.public_id},
    }
    assert model.counts["requests"] == 2


async def test_two_calls_of_one_answer_are_under_way_at_once(
    framework: Any, model: ModelServer
) -> None:
    begun = {"billing": asyncio.Event(), "search": asyncio.Event()}

    def meet(own: str, other: str) -> Callable[..., Any]:
        async def run(turn: Turn) -> str:
            begun[own].set()
            await begun[other].wait()
            return own

        return run

    callees = {"billing": meet("billing", "search"), "search": meet("search", "billing")}
    with supervising(framework, model, **callees) as client:
        async with hosting():
            task = await client.send(TWO)
    assert task.status.state.word == "completed"
    told = await run_in_thread(tools_told, task.id)
    results = {event["toolResult"]["content"] for event in told if "toolResult" in event}
    assert results == {"billing", "search"}


@pytest.mark.parametrize("park", [5.0, thorough(0.0)])
async def test_a_call_is_not_made_again_after_its_process_has_died(
    framework: Any, model: ModelServer, settings: Any, park: float
) -> None:
    settings.A2A_PARK_SECONDS = park
    go = asyncio.Event()

    async def wait(turn: Turn) -> str:
        await go.wait()
        return "done"

    with supervising(framework, model, billing=wait) as client:
        async with hosting():
            task = await client.begin(ONE)
            await until(lambda: run_in_thread(Delegation.objects.exists))
            if park:
                await run_in_thread(take_away, task.id)
            go.set()
            await until(lambda: client_state(client, task.id, "completed"))
            assert text_of(await client.get(task.id)) == ["it is done"]
    assert await run_in_thread(count, "billing") == 1
    assert model.counts["requests"] == 2
    told = await run_in_thread(tools_told, task.id)
    assert [kind for event in told for kind in event] == ["toolCall", "toolResult"]


async def test_a_refused_call_is_an_error_that_the_model_answers(
    framework: Any, model: ModelServer
) -> None:
    with supervising(framework, model, calls=("search",), billing=echo) as client:
        async with hosting():
            task = await client.send(ONE)
    assert "does not call billing" in text_of(task)[0]
    _, result = await run_in_thread(tools_told, task.id)
    assert result["toolResult"]["error"] is True
    assert "metadata" not in result["toolResult"]
    assert await run_in_thread(count, "billing") == 0


async def test_a_task_that_failed_is_an_error_that_the_model_answers(
    framework: Any, model: ModelServer
) -> None:
    async def fail(turn: Turn) -> Any:
        return turn.fail("No such order.")

    with supervising(framework, model, billing=fail) as client:
        async with hosting():
            task = await client.send(ONE)
    assert "The task of billing is failed: No such order." in text_of(task)[0]
    _, result = await run_in_thread(tools_told, task.id)
    assert result["toolResult"]["error"] is True
    assert "metadata" in result["toolResult"]


async def test_a_question_is_asked_and_answered_in_the_task_of_the_supervisor(
    framework: Any, model: ModelServer, settings: Any
) -> None:
    settings.A2A_PARK_SECONDS = 0.0
    with supervising(framework, model, billing=ask) as client:
        async with hosting():
            task = await client.begin(ONE)
            await until(lambda: client_state(client, task.id, "input-required"))
            asked = await client.get(task.id)
            assert status_text(asked).startswith("Sure?")
            await client.begin("yes", task_id=task.id)
            await until(lambda: client_state(client, task.id, "completed"))
            assert text_of(await client.get(task.id)) == ["it is sure: True"]
    assert await run_in_thread(count, "billing") == 1
    assert model.counts["requests"] == 2


@pytest.mark.parametrize("framework", [PYDANTIC_AI, LANGGRAPH], indirect=True, ids=repr)
async def test_a_model_that_repeats_ids_makes_a_call_each_time(
    framework: Any, model: ModelServer
) -> None:
    script = "\n".join(f'ID a + CALL billing {{"message": "{n}"}}' for n in (1, 2, 2))
    with supervising(framework, model, billing=echo) as client:
        async with hosting():
            task = await client.send(f"{script}\nSAY it is $RESULT")
    assert text_of(task) == ["it is billing: 2"]
    assert await run_in_thread(count, "billing") == 3


@pytest.mark.in_turn("framework", share=3)
async def test_a_chain_of_supervisors_needs_no_slot_for_each(
    framework: Any, model: ModelServer, settings: Any
) -> None:
    settings.A2A_RUN_SLOTS = 2
    with ExitStack() as stack:
        stack.enter_context(playing(echo, slug="level-0"))
        for level in range(1, 5):
            thing = make(framework, model, f"level-{level - 1}")
            agent = stack.enter_context(hosted(thing, calls="*", slug=f"level-{level}"))
        text = "leaf"
        for level in range(4):
            text = f'CALL level_{level} {{"message": {json.dumps(text)}}}\nSAY $RESULT'
        async with hosting():
            task = await Client(agent).send(text)
    assert text_of(task) == ["billing: leaf"]
    assert await run_in_thread(Task.objects.count) == 5


@pytest.mark.parametrize("slugs", [(), ("a-b", "a_b")])
def test_tools_have_names_of_their_own(framework: Any, slugs: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="a name of its own"):
        TOOLS[framework].tools_for(*slugs)
