"""Graphs of LangGraph in a host, with a model that counts its requests: real graphs, unchanged."""

from __future__ import annotations

import asyncio
import dataclasses
import operator
import time
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, TypedDict

import msgspec
import pytest
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI
from langgraph.config import get_stream_writer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Send, interrupt

from a2a_project.operations import TABLE
from a2a_tasks.agents import Part, data, file
from a2a_tasks.frameworks.langgraph import LangGraphAgent
from a2a_tasks.models import ConversationMemory, Run, Task
from a2a_tasks.store.db import run_in_thread
from tests.model_server import ModelServer, serving_model
from tests.support.execution.host import (
    Client,
    client_state,
    hosting,
    listened,
    not_carried,
    take_away,
)
from tests.support.execution.waiting import until
from tests.support.frameworks import hosted, seen, shown, status_text

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """A model server of the test's own: its counts are those of the test."""
    with serving_model() as server:
        yield server


def chat(model: ModelServer, *tools: Any, **about: Any) -> Any:
    """A graph of a model and its tools."""
    speaker: Any = ChatOpenAI(
        model="scripted",
        base_url=model.url,
        api_key="none",  # type: ignore[arg-type]
        stream_usage=True,
        max_retries=0,
    )

    async def speak(state: MessagesState) -> Any:
        bound = speaker.bind_tools(tools) if tools else speaker
        return {"messages": [await bound.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState).add_node(speak).add_edge(START, "speak")
    if tools:
        graph.add_node("tools", ToolNode(tools))
        graph.add_conditional_edges("speak", tools_condition).add_edge("tools", "speak")
    return graph.compile(**about)


def text_of(task: Any) -> list[str]:
    """The artifacts of a task, each as its text."""
    bodies = [msgspec.json.decode(body) for body in task.artifacts or ()]
    return ["".join(part.get("text", "") for part in body["parts"]) for body in bodies]


def question_of(task: Any) -> list[dict[str, Any]]:
    """The interrupts in the question of a task."""
    parts = msgspec.json.decode(task.status.message or b"")["parts"]
    found: list[dict[str, Any]] = parts[1]["data"]["interrupts"]
    return found


async def trace() -> str:
    """The trace of the newest run."""
    return (await run_in_thread(Run.objects.latest, "pk")).error


async def send_parts(client: Client, *parts: Part, **about: Any) -> Any:
    """The task of a message with these parts, once it has settled."""
    request = client.request("", **about)
    message = msgspec.structs.replace(request.message, parts=parts)
    return await TABLE["SendMessage"](dataclasses.replace(request, message=message), client.call())


async def usage_of(task: Any) -> Any:
    """The usage of the task, by model."""
    return msgspec.json.decode((await run_in_thread(Task.objects.get, public_id=task.id)).usage)


class Ledger:
    """Tools that note their calls."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def add(self, a: int, b: int) -> int:
        """Add two numbers."""
        self.calls.append((a, b))
        return a + b

    def pay(self, amount: int) -> str:
        """Pay."""
        answer = interrupt({"question": f"May I pay {amount}?", "amount": amount})
        self.calls.append((amount, answer))
        return f"paid {amount}, as you said {answer}"


@pytest.fixture
def ledger() -> Ledger:
    """The tools of a test."""
    return Ledger()


PAY = 'CALL pay {"amount": 7}\nSAY it is done: $RESULT'


class TestStreaming:
    async def test_words_come_while_the_model_speaks(self, model: ModelServer) -> None:
        with hosted(chat(model)) as agent:
            async with hosting():
                stream = await Client(agent).stream("SLOW 0.15 + SAY 1 2 3 4 5 6 7 8 WAIT 9")
                lines: list[str] = []
                async for batch in stream.batches(0.5):
                    lines += [shown(msgspec.json.decode(event.body)) for event in batch or ()]
                    if len(lines) > 5 and model.of("running"):
                        model.release()
                await stream.close()
        assert lines[:2] == ["working", "artifact answer: 1"]
        assert len(lines) > 6
        said = [line.partition(":")[2] or line.partition("+")[2] for line in lines[1:-1]]
        assert "".join(said).replace("(last)", "").split() == list("123456789")
        assert lines[-1] == "completed"
        assert model.counts["requests"] == 1

    async def test_each_answer_of_the_model_is_an_artifact(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        with hosted(chat(model, ledger.add)) as agent:
            async with hosting():
                script = 'SAY let me see + CALL add {"a": 1, "b": 2}\nSAY it is $RESULT'
                task = await Client(agent).send(script)
        assert text_of(task) == ["let me see", "it is 3"]
        assert (task.status.state.word, ledger.calls) == ("completed", [(1, 2)])

    async def test_an_agent_that_does_not_stream_answers_whole(self, model: ModelServer) -> None:
        with hosted(chat(model), streaming=False) as agent:
            async with hosting():
                assert text_of(await Client(agent).send("SAY all of it")) == ["all of it"]


class TestUsage:
    async def test_it_is_what_the_model_server_counts_over_tools_and_turns(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        with hosted(chat(model, ledger.pay)) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.send(PAY)
                await client.send("yes", task_id=task.id)
        ((name, used),) = (await usage_of(task)).items()
        counts = model.counts
        assert name == "scripted"
        assert used["requests"] == counts["requests"] == 2
        assert used["inputTokens"] == counts["input_tokens"]
        assert used["outputTokens"] == counts["output_tokens"]


class TestMemory:
    async def test_the_second_task_of_a_conversation_knows_the_first(
        self, model: ModelServer
    ) -> None:
        with hosted(chat(model)) as agent:
            async with hosting():
                client = Client(agent)
                first = await client.send("SAY I heard $USERS")
            async with hosting():  # another runner: nothing is kept in the process
                second = await client.send("SAY I heard $USERS", context_id=first.context_id)
                other = await client.send("SAY I heard $USERS")
        assert [text_of(task) for task in (first, second, other)] == [
            ["I heard 1"],
            ["I heard 2"],
            ["I heard 1"],
        ]

    async def test_a_failed_turn_leaves_no_message(self, model: ModelServer) -> None:
        with hosted(chat(model)) as agent:
            async with hosting():
                client = Client(agent)
                first = await client.send("FAIL 500")
                second = await client.send("SAY I heard $USERS", context_id=first.context_id)
        assert first.status.state.word == "failed"
        assert text_of(second) == ["I heard 1"]


class TestInterrupts:
    async def test_the_answer_goes_to_a_process_that_did_not_ask(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        with hosted(chat(model, ledger.pay)) as agent:
            client = Client(agent)
            async with hosting():
                asked = await client.send(PAY)
                assert (asked.status.state.word, ledger.calls) == ("input-required", [])
                assert status_text(asked).startswith("May I pay 7?")
                (question,) = question_of(asked)
                assert question["value"] == {"question": "May I pay 7?", "amount": 7}
            async with hosting():
                done = await client.send("yes", task_id=asked.id)
        assert text_of(done) == ["it is done: paid 7, as you said yes"]
        assert ledger.calls == [(7, "yes")]
        assert model.counts["requests"] == 2
