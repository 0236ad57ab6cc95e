"""`turn.ask(form=)`: the answer reaches the agent as an object that fits, or does not reach it at all."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import msgspec
import pytest

from a2a_project.operations import TABLE
from a2a_tasks.agents import Turn, data, text
from a2a_tasks.models import Event, Run
from a2a_tasks.protocol.errors import InvalidParams
from a2a_tasks.protocol.forms import FORM
from a2a_tasks.protocol.values import Part, Task, replace
from a2a_tasks.store.db import run_in_thread
from tests.support.agents_under_test import playing
from tests.support.execution.host import Client, client_state
from tests.support.execution.waiting import until

pytestmark = [
    pytest.mark.quick_on("sqlite"),
    pytest.mark.django_db,
    pytest.mark.usefixtures("local_runs"),
]
FORM_OF_TRIP = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "people": {"type": "integer"}},
    "required": ["to", "people"],
}
JSON = {"default_input_modes": ["text/plain", "application/json"]}


async def answered(client: Client, task: str, *parts: Part) -> Task:
    """The task after an answer."""
    request = client.request("", task_id=task)
    request = dataclasses.replace(request, message=replace(request.message, parts=parts))
    found = await TABLE["SendMessage"](request, client.call())
    assert isinstance(found, Task)
    return found


def said_last(task: Task) -> Any:
    """The last artifact."""
    return msgspec.json.decode(task.artifacts[-1])["parts"]  # type: ignore[index]


@pytest.mark.parametrize("kind", ["loop", "thread"])
async def test_an_answer_that_fits_reaches_the_agent_and_others_are_refused(kind: str) -> None:
    async def asks(turn: Turn) -> Any:
        answer = await turn.answer
        return turn.ask("Where?", form=FORM_OF_TRIP) if answer is None else data(answer)

    def asks_in_a_thread(turn: Turn) -> Any:
        answer = turn.answer.now()
        return turn.ask("Where?", form=FORM_OF_TRIP) if answer is None else data(answer)

    with playing(asks if kind == "loop" else asks_in_a_thread, **JSON) as agent:
        alice = Client(agent)
        task = await alice.send()
        question = msgspec.json.decode(task.status.message or b"")
        assert question["extensions"] == [FORM]
        assert question["parts"] == [{"text": "Where?"}, {"data": {"form": FORM_OF_TRIP}}]
        before = await run_in_thread(Event.objects.count)
        for part, path in [
            (data({"to": "Rome", "people": "two"}), "message.parts[0].data.people"),
            (text("Rome"), "message.parts"),
        ]:
            with pytest.raises(InvalidParams) as refused:
                await answered(alice, task.id, part)
            assert [where for where, _ in refused.value.violations] == [path]
        assert await alice.states(task.id) == "input-required"
        assert await run_in_thread(Event.objects.count) == before
        assert await run_in_thread(Run.objects.count) == 1
        done = await answered(alice, task.id, data({"to": "Rome", "people": 2}))
    assert said_last(done) == [{"data": {"to": "Rome", "people": 2}}]


async def test_a_text_answers_the_only_question() -> None:
    async def run(turn: Turn) -> Any:
        answer = await turn.answer
        form = {"type": "object", "properties": {"sure": {"type": "boolean"}}}
        return turn.ask("Sure?", form=form) if answer is None else str(answer)

    with playing(run) as agent:
        alice = Client(agent)
        task = await alice.send()
        assert said_last(await alice.send("yes", task_id=task.id)) == [{"text": "{'sure': True}"}]


async def test_a_message_sent_before_the_question_is_no_answer() -> None:
    go = asyncio.Event()

    async def run(turn: Turn) -> Any:
        if turn.text == "one":
            await go.wait()
            return turn.ask("Where?", form=FORM_OF_TRIP)
        return str(await turn.answer)

    with playing(run) as agent:
        alice = Client(agent)
        task = await alice.begin("one")
        await until(lambda: client_state(alice, task.id, "working"))
        await alice.begin("two", task_id=task.id)
        go.set()
        await until(lambda: client_state(alice, task.id, "completed"))
        assert said_last(await alice.get(task.id)) == [{"text": "None"}]


async def test_a_schema_that_cannot_be_a_form_fails_the_task() -> None:
    async def run(turn: Turn) -> Any:
        return turn.ask("Where?", form={"type": "object", "properties": {"x": {"type": "y"}}})

    with playing(run) as agent:
        task = await Client(agent).send()
    assert task.status.state.word == "failed"
    fault = b"The form of the agent's question is wrong: properties.x.type"
    assert fault in bytes(task.status.message or b"")
