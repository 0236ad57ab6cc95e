"""Graphs of LangGraph in a host, with a model that counts its requests: real graphs, unchanged."""

from __future__ import annotations

import asyncio
import dataclasses
import operator
import time
from collections.abc import Iterator
from typing import Annotated, Any, TypedDict

import msgspec
import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_openai import ChatOpenAI
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
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

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.quick_on("sqlite")]


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """A model server of the test's own: its counts are those of the test."""
    with serving_model() as server:
        yield server


def speaker_of(model: ModelServer) -> Any:
    """The model of the server."""
    about: dict[str, Any] = {"base_url": model.url, "api_key": "none", "stream_usage": True}
    return ChatOpenAI(model="scripted", max_retries=0, **about)


def chat(model: ModelServer, *tools: Any, **about: Any) -> Any:
    """A graph of a model and its tools."""
    speaker = speaker_of(model)

    async def speak(state: MessagesState) -> Any:
        bound = speaker.bind_tools(tools) if tools else speaker
        return {"messages": [await bound.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState).add_node(speak).add_edge(START, "speak")
    if tools:
        graph.add_node("tools", ToolNode(tools))
        graph.add_conditional_edges("speak", call_tools, ["tools", END]).add_edge("tools", "speak")
    return graph.compile(**about)


def call_tools(state: MessagesState) -> Any:
    """Let each call of a tool be a task of its own."""
    (*_, last) = state["messages"]
    assert isinstance(last, AIMessage)
    return [Send("tools", [call]) for call in last.tool_calls] or END


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

    async def test_several_are_answered_by_their_ids_and_the_member_that_does_not_fit_is_named(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        script = 'CALL pay {"amount": 7} + CALL pay {"amount": 8}\nSAY done'
        with hosted(chat(model, ledger.pay)) as agent:
            async with hosting():
                client = Client(agent)
                asked = await client.send(script)
                first, second = (one["id"] for one in question_of(asked))
                for answer, fault in [
                    ("yes", "There are several questions: please answer each by its id"),
                    (" ", "There are several questions"),
                    (data({"interrupts": {first: 1}}), f"interrupts.{second} is missing."),
                    (data({"interrupts": {first: 1, "x": 1}}), "interrupts.x was not asked."),
                    (data({"interrupts": 1}), "interrupts must be an object"),
                    (data({"form": 1}), "The data must be an object with interrupts."),
                ]:
                    part = answer if isinstance(answer, Part) else Part(text=str(answer))
                    again = await send_parts(client, part, task_id=asked.id)
                    assert status_text(again).startswith(fault)
                    assert [one["id"] for one in question_of(again)] == [first, second]
                answers = data({"interrupts": {first: {"ok": True}, second: "no"}})
                done = await send_parts(client, answers, task_id=asked.id)
        assert text_of(done) == ["done"]
        assert sorted(ledger.calls, key=str) == [(7, {"ok": True}), (8, "no")]

    async def test_other_tasks_of_the_conversation_go_on_while_one_waits(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        with hosted(chat(model, ledger.pay)) as agent:
            async with hosting():
                client = Client(agent)
                asked = await client.send(PAY)
                other = await client.send("SAY I heard $USERS", context_id=asked.context_id)
                done = await client.send("yes", task_id=asked.id)
                last = await client.send("SAY I heard $USERS", context_id=asked.context_id)
        assert text_of(other) == ["I heard 1"]
        assert text_of(done) == ["it is done: paid 7, as you said yes"]
        assert text_of(last) == ["I heard 3"]

    async def test_one_node_may_ask_twice(self) -> None:
        def talk(state: MessagesState) -> Any:
            return {"messages": [AIMessage(f"{interrupt('first?')}, {interrupt('second?')}")]}

        graph = StateGraph(MessagesState).add_node(talk).add_edge(START, "talk").compile()
        with hosted(graph) as agent:
            async with hosting():
                client = Client(agent)
                asked = await client.send()
                assert status_text(asked).startswith("first?")
                again = await client.send("one", task_id=asked.id)
                assert status_text(again).startswith("second?")
                assert text_of(await client.send("two", task_id=asked.id)) == ["one, two"]

    async def test_a_subgraph_may_ask(self) -> None:
        async def before(state: MessagesState) -> Any:
            return {"messages": [AIMessage("before")]}

        async def inner(state: MessagesState) -> Any:
            return {"messages": [AIMessage(f"heard {interrupt('what?')}")]}

        sub = StateGraph(MessagesState).add_node(before).add_node(inner)
        sub.add_edge(START, "before").add_edge("before", "inner")
        graph = StateGraph(MessagesState).add_node("sub", sub.compile()).add_edge(START, "sub")
        with hosted(graph.compile()) as agent:
            client = Client(agent)
            async with hosting():
                asked = await client.send()
                assert text_of(asked) == ["before"]
            async with hosting():
                done = await client.send("this", task_id=asked.id)
        assert text_of(done) == ["before", "heard this"]


class TestTrouble:
    @pytest.mark.parametrize(
        ("script", "words"),
        [
            ("FAIL 429", "The model is busy. Please try again later."),
            ("FAIL 401", "The model cannot be used at present."),
            ("FAIL 400", "The model refused the request."),
            ("FAIL 500", "The model did not answer. Please try again later."),
        ],
    )
    async def test_it_fails_in_words_for_people_with_a_trace_for_operators(
        self, model: ModelServer, script: str, words: str
    ) -> None:
        with hosted(chat(model)) as agent:
            async with hosting():
                task = await Client(agent).send(script)
        assert (task.status.state.word, status_text(task)) == ("failed", words)
        assert "langchain" in await trace()

    async def test_a_node_that_breaks_fails_the_run(self) -> None:
        def break_down(state: MessagesState) -> Any:
            raise KeyError("secret")

        graph = StateGraph(MessagesState).add_node(break_down).add_edge(START, "break_down")
        with hosted(graph.compile()) as agent:
            async with hosting():
                task = await Client(agent).send()
        assert status_text(task) == "The agent failed."
        assert "KeyError: 'secret'" in await trace()

    async def test_a_graph_without_end_is_stopped(self) -> None:
        def again(state: MessagesState) -> Any:
            return {}

        graph = StateGraph(MessagesState).add_node(again).add_edge(START, "again")
        graph.add_edge("again", "again")

        def make_config(agent: Any, turn: Any) -> Any:
            return {"recursion_limit": 5}

        with hosted(graph.compile(), make_config=make_config) as agent:
            async with hosting():
                task = await Client(agent).send()
        assert status_text(task) == "This message needs more steps than one message may take."

    async def test_a_state_that_is_too_large_to_keep_fails_the_task(self, settings: Any) -> None:
        settings.A2A_MEMORY_MAX_BYTES = 3000

        def answer(state: MessagesState) -> Any:
            return {"messages": [AIMessage("x" * 1000)]}

        graph = StateGraph(MessagesState).add_node(answer).add_edge(START, "answer")
        with hosted(graph.compile()) as agent:
            async with hosting():
                client = Client(agent)
                first = await client.send()
                second = await client.send(context_id=first.context_id)
                kept = await run_in_thread(lambda: len(ConversationMemory.objects.get().value))
        assert first.status.state.word == "completed"
        assert status_text(second) == (
            "This conversation has become too long. Please begin a new one."
        )
        assert 1000 < kept < 3000


class TestCancelling:
    async def test_it_stops_the_request_of_the_model_within_a_second(
        self, model: ModelServer
    ) -> None:
        with hosted(chat(model)) as agent:
            async with hosting():
                client = Client(agent)
                first = await client.send("SAY first")
                task = await client.begin("SAY 1 2 WAIT 3", context_id=first.context_id)
                await until(lambda: has_said(client, task.id, "1"))
                at = time.monotonic()
                await client.cancel(task.id)
                await until(lambda: model.of("left"))
                assert time.monotonic() - at < 1
                await until(not_carried)
                assert await client_state(client, task.id, "canceled")
                last = await client.send("SAY I heard $USERS", context_id=first.context_id)
        assert text_of(last) == ["I heard 2"]


async def settled(client: Client, task: str) -> bool:
    """Is the task not at work?"""
    return (await client.states(task)) != "working"


async def has_said(client: Client, task: str, text: str) -> bool:
    """Is the text among the artifacts?"""
    return text in "".join(text_of(await client.get(task)))


class TestAnotherAttempt:
    async def test_repeats_no_node_that_has_finished_and_no_text(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        """The run is taken away in the middle of the third answer, as if its process had died."""
        script = (
            'SAY first + CALL add {"a": 1, "b": 2} + CALL add {"a": 3, "b": 4}\n'
            'SAY second + CALL add {"a": 5, "b": 6}\nSAY third WAIT and last'
        )
        with hosted(chat(model, ledger.add)) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.begin(script)
                await until(lambda: has_said(client, task.id, "third"))
                await run_in_thread(take_away, task.id)
                await until(lambda: model.of("left"))
                stream = await client.subscribe(task.id)
                model.release()
                lines = [shown(msgspec.json.decode(e.body)) for e in await listened(stream)]
                await until(lambda: client_state(client, task.id, "completed"))
                assert text_of(await client.get(task.id)) == ["first", "second", "third and last"]
                ((_, used),) = (await usage_of(task)).items()
                last = await client.send("SAY I heard $USERS", context_id=task.context_id)
        assert [one.line for one in model.exchanges] == [0, 1, 2, 2, 0]
        assert sorted(ledger.calls) == [(1, 2), (3, 4), (5, 6)]
        assert not [line for line in lines if "first" in line or "second" in line]
        assert used["requests"] == 3
        assert text_of(last) == ["I heard 2"]

    async def test_uses_an_answer_once(self, model: ModelServer) -> None:
        """The first interrupt was answered, the second reached, and the process dies in the other node."""
        held, calls = asyncio.Event(), 0

        async def twice(state: MessagesState) -> Any:
            return {"messages": [AIMessage(f"{interrupt('first?')}, {interrupt('second?')}")]}

        async def once(state: MessagesState) -> Any:
            nonlocal calls
            answer = interrupt("other?")
            calls += 1
            await held.wait()
            return {"messages": [AIMessage(f"{answer}")]}

        graph = StateGraph(MessagesState).add_node(twice).add_node(once)
        graph.add_edge(START, "twice").add_edge(START, "once")
        with hosted(graph.compile()) as agent:
            async with hosting():
                client = Client(agent)
                asked = await client.send()
                ids = {one["value"]: one["id"] for one in question_of(asked)}
                answers = data({"interrupts": {ids["first?"]: "one", ids["other?"]: "three"}})
                request = client.request("", task_id=asked.id, return_immediately=True)
                message = msgspec.structs.replace(request.message, parts=(answers,))
                request = dataclasses.replace(request, message=message)
                await TABLE["SendMessage"](request, client.call())
                await until(lambda: calls == 1)
                await run_in_thread(take_away, asked.id)
                await until(lambda: calls == 2)
                held.set()
                await until(lambda: settled(client, asked.id))
                assert status_text(await client.get(asked.id)).startswith("second?")
                done = await client.send("two", task_id=asked.id)
        assert sorted(text_of(done)) == ["one, two", "three"]


class Report(TypedDict):
    """A state without messages."""

    topic: str
    parts: Annotated[list[str], operator.add]
    report: dict[str, Any]


class TestContent:
    async def test_a_graph_may_take_and_give_any_state(self) -> None:
        def split(state: Report) -> Any:
            return [Send("work", {"topic": word}) for word in state["topic"].split()]

        async def work(state: Report) -> Any:
            get_stream_writer()({"doing": state["topic"]})
            return {"parts": [state["topic"].upper()]}

        def join(state: Report) -> Any:
            get_stream_writer()("joining")
            return {"report": {"parts": sorted(state["parts"])}}

        graph = StateGraph(Report).add_node(work).add_node(join)
        graph.add_conditional_edges(START, split, ["work"]).add_edge("work", "join")

        async def make_input(agent: Any, turn: Any) -> Any:
            return {"topic": turn.text}

        with hosted(graph.compile()) as agent:
            (fault,) = agent.check()
            assert fault.msg == "graph has no messages in its state; override make_input"
        with hosted(graph.compile(), make_input=make_input, output_key="report") as agent:
            assert list(agent.check()) == []
            async with hosting():
                lines = await seen(Client(agent), "a b")
        assert sorted(lines[1:3]) == ["working: {'doing': 'a'}", "working: {'doing': 'b'}"]
        assert lines[3:] == [
            "working: joining",
            "artifact result: {'parts': ['A', 'B']} (last)",
            "completed",
        ]

    async def test_only_the_nodes_that_are_named_are_heard(self) -> None:
        def think(state: MessagesState) -> Any:
            return {"messages": [AIMessage("thinking")]}

        def answer(state: MessagesState) -> Any:
            return {"messages": [*state["messages"], AIMessage("an answer")]}

        graph = StateGraph(MessagesState).add_node(think).add_node(answer)
        graph.add_edge(START, "think").add_edge("think", "answer")
        for nodes, said in (((), ["thinking", "an answer"]), (("answer",), ["an answer"])):
            with hosted(graph.compile(), nodes=nodes) as agent:
                async with hosting():
                    assert text_of(await Client(agent).send()) == said

    async def test_files_and_data_reach_the_graph(self) -> None:
        heard: list[Any] = []

        def answer(state: MessagesState, config: RunnableConfig) -> Any:
            heard.append((state["messages"][0].content, config["configurable"]["turn"].caller))
            return {"messages": [AIMessage("seen")]}

        graph = StateGraph(MessagesState).add_node(answer).add_edge(START, "answer")
        modes = ("text/plain", "application/json", "image/*")
        with hosted(graph.compile(), default_input_modes=modes) as agent:
            async with hosting():
                picture = file(b"png", "a.png", "image/png")
                await send_parts(Client(agent), Part(text="look"), data({"n": 1}), picture)
        ((blocks, caller),) = heard
        assert [block.get("text") for block in blocks] == ["look", '{"n":1}', None]
        assert (blocks[2]["type"], blocks[2]["base64"]) == ("image", "cG5n")
        assert caller.principal == "user:alice"

    async def test_a_graph_may_be_invoked_in_the_thread_of_a_node(self, model: ModelServer) -> None:
        def speak(state: MessagesState) -> Any:
            return {"messages": [speaker_of(model).invoke(state["messages"])]}

        inner: Any = StateGraph(MessagesState).add_node(speak).add_edge(START, "speak").compile()

        def ask(state: MessagesState) -> Any:
            said = inner.invoke({"messages": [("user", "SAY in a thread")]})
            return {"messages": said["messages"][-1:]}

        graph = StateGraph(MessagesState).add_node(ask).add_edge(START, "ask").compile()
        with hosted(graph) as agent:
            async with hosting():
                assert text_of(await Client(agent).send()) == ["in a thread"]


class TestChecks:
    def test_a_graph_is_in_order(self, model: ModelServer) -> None:
        with hosted(chat(model)) as agent:
            assert list(agent.check()) == []

    def test_a_graph_that_stops_before_nodes_is_refused(self, model: ModelServer) -> None:
        with hosted(chat(model, interrupt_before=["speak"])) as agent:
            (fault,) = agent.check()
        assert fault.id == "a2a_tasks.E051"
        assert fault.msg.startswith("graph has interrupt_before or interrupt_after")

    def test_another_thing_is_no_graph(self) -> None:
        class Wrong(LangGraphAgent, abstract=True):
            graph = "text"

        found = [check.msg for check in Wrong().check() if check.id == "a2a_tasks.E051"]
        assert found == ["graph is a str, not a compiled graph of LangGraph"]
