"""Graphs of LangGraph in a host, with a model that counts its requests: real graphs, unchanged."""

from __future__ import annotations

import asyncio
import dataclasses
import operator
import re
from decimal import Decimal
from typing import Annotated, Any, TypedDict

import msgspec
import pytest
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_stream_writer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Send, interrupt
from pydantic import BaseModel

from a2a_project.operations import TABLE
from a2a_tasks.agents import Part, data, file
from a2a_tasks.models import (
    PARKED,
    BudgetAction,
    BudgetUse,
    ConversationMemory,
    Run,
    RunLine,
    Step,
    Usage,
)
from a2a_tasks.protocol.errors import InvalidParams
from a2a_tasks.store import budgets
from a2a_tasks.store.db import run_in_thread
from tests.model_server import ModelServer
from tests.support.budgets import limited
from tests.support.execution.host import Client, hosting, take_away, tools_told
from tests.support.execution.waiting import until
from tests.support.frameworks import (
    hosted,
    question_of,
    seen,
    send_parts,
    status_text,
    text_of,
    trace,
    usage_of,
)
from tests.support.model_frameworks import LANGGRAPH, City

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]


class Order(BaseModel):
    """An answer with a type of its own."""

    city: City


class TestInterrupts:
    async def test_an_answer_fits_the_schema_of_its_interrupt(self) -> None:
        def order(state: MessagesState) -> Any:
            found = interrupt({"question": "What?", "shop": 7}, response_schema=Order)
            return {"messages": [AIMessage(repr(found))]}

        graph = StateGraph(MessagesState).add_node(order).add_edge(START, "order").compile()
        with hosted(graph) as agent:
            async with hosting():
                client = Client(agent)
                asked = await client.send()
                text, about, form = question_of(asked)
                (one,) = about["interrupts"]
                assert (text, one["value"]) == ("What?", {"question": "What?", "shop": 7})
                assert form["form"]["properties"][one["id"]]["title"] == "What?"
                answer: Any = {"city": {"name": "Bern", "people": "many"}}
                with pytest.raises(InvalidParams) as refused:
                    await send_parts(client, data({one["id"]: answer}), task_id=asked.id)
                assert refused.value.violations == (
                    (
                        f"message.parts[0].data.{one['id']}.city.people",
                        "'many' is not of type 'integer'",
                    ),
                )
                answer = {"city": {"name": "Bern", "people": 7}}
                done = await send_parts(client, data({one["id"]: answer}), task_id=asked.id)
        assert text_of(done) == ["Order(city=City(name='Bern', people=7))"]

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
    async def test_a_model_in_a_thread_that_never_answers_is_given_up_too(
        self, model: ModelServer
    ) -> None:
        speaker = LANGGRAPH.model(model)

        def speak(state: MessagesState) -> Any:
            return {"messages": [speaker.invoke(state["messages"])]}

        graph = StateGraph(MessagesState).add_node(speak).add_edge(START, "speak")
        with hosted(graph.compile(), model_seconds=0.3) as agent:
            async with hosting():
                task = await Client(agent).send("SLOW 0.6 + SAY 1 2")
                assert status_text(task) == "The model did not answer. Please try again later."
                await until(lambda: model.of("finished"))  # its thread is free

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

    async def test_a_state_that_is_too_large_fails_at_the_node_that_made_it_so(
        self, settings: Any
    ) -> None:
        settings.A2A_MEMORY_MAX_BYTES = 5000
        paid: list[int] = []

        def answer(state: MessagesState) -> Any:
            return {"messages": [AIMessage("x" * 3000)]}

        def pay(state: MessagesState) -> Any:
            paid.append(len(state["messages"]))
            return {}

        graph = StateGraph(MessagesState).add_node(answer).add_node(pay)
        graph.add_edge(START, "answer").add_edge("answer", "pay")
        with hosted(graph.compile()) as agent:
            async with hosting():
                client = Client(agent)
                first = await client.send()
                second = await client.send(context_id=first.context_id)
                kept = await run_in_thread(lambda: len(ConversationMemory.objects.get().value))
                settings.A2A_MEMORY_MAX_BYTES = 2000
                third = await client.send()
        assert first.status.state.word == "completed"
        said = r"This conversation has become too large for this agent: its state has 6\d{3} bytes and "
        said += r'may have 5000\. The largest key is "messages"\. Please begin a new conversation\.'
        assert re.fullmatch(said, status_text(second))
        said = r"This message is too large for this agent: its state has 3\d{3} bytes and may have 2000\. "
        assert re.fullmatch(said + r'The largest key is "messages"\.', status_text(third))
        assert (paid, 3000 < kept < 5000) == ([2], True)


async def settled(client: Client, task: str) -> bool:
    """Is the task not at work?"""
    return (await client.states(task)) != "working"


class TestAnotherAttempt:
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
                ids = {one["value"]: one["id"] for one in question_of(asked)[1]["interrupts"]}
                answers = data({ids["first?"]: "one", ids["other?"]: "three"})
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


@pytest.mark.parametrize("asks", [True, False])
async def test_usage_that_the_server_does_not_send_is_said_in_the_log(
    model: ModelServer, asks: bool
) -> None:
    chat = LANGGRAPH.model(model)
    chat.stream_usage = asks

    async def speak(state: MessagesState) -> Any:
        await chat.ainvoke(state["messages"])
        return {"messages": [await chat.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState).add_node(speak).add_edge(START, "speak")
    with hosted(graph.compile()) as agent:
        async with hosting():
            task = await Client(agent).send("SAY hello + CACHED 1")
    ((_, used),) = (await usage_of(task)).items()
    lines = RunLine.objects.filter(logger="turn.usage").values_list("text", flat=True)
    told = await run_in_thread(list, lines)
    if asks:
        assert (used["inputTokens"], used["cachedTokens"], told) == (10, 2, [])
    else:
        (line,) = told
        assert "inputTokens" not in used
        assert line.startswith("An answer of a model came without usage:")
        assert "stream_usage=True" in line


async def test_usage_without_tokens_of_the_input_is_said_too() -> None:
    """langchain-anthropic 1.7.10 reads none from a stream that has them at its start alone."""
    used = UsageMetadata(input_tokens=0, output_tokens=2, total_tokens=2)
    chat = FakeMessagesListChatModel(responses=[AIMessage("hello", usage_metadata=used)])

    async def speak(state: MessagesState) -> Any:
        return {"messages": [await chat.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState).add_node(speak).add_edge(START, "speak")
    with hosted(graph.compile()) as agent:
        async with hosting():
            await Client(agent).send("hello")
    lines = RunLine.objects.filter(logger="turn.usage").values_list("text", flat=True)
    (line,) = await run_in_thread(list, lines)
    assert line.startswith("An answer of a model came without the tokens of its input:")


@pytest.mark.parametrize("nested", [False, True])
async def test_a_budget_without_anything_left_lets_the_nodes_end_that_have_begun(
    model: ModelServer, nested: bool
) -> None:
    chat, held, calls = LANGGRAPH.model(model), asyncio.Event(), 0

    async def quick(state: MessagesState) -> Any:
        return {"messages": [await chat.ainvoke(state["messages"])]}

    async def slow(state: MessagesState) -> Any:
        nonlocal calls
        calls += 1
        await held.wait()
        return {"messages": [AIMessage("slow")]}

    inner = StateGraph(MessagesState).add_node("quick", quick).add_edge(START, "quick")
    graph = StateGraph(MessagesState).add_node("slow", slow).add_edge(START, "slow")
    graph.add_node("quick", inner.compile() if nested else quick).add_edge(START, "quick")
    # The budget suffices for these two: there is more to do.
    graph.add_node("last", lambda _: {"messages": [AIMessage("last")]})
    graph.add_edge(["quick", "slow"], "last")
    with hosted(graph.compile()) as agent:
        async with hosting(), limited(1, action=BudgetAction.ASK):
            client = Client(agent)
            task = await client.begin("SAY quick")
            await until(lambda: run_in_thread(lambda: Usage.objects.exists()))
            await until(lambda: run_in_thread(lambda: Step.objects.count() >= 2))
            held.set()
            await until(lambda: run_in_thread(budgets.list_asking().exists))
            # A subgraph waits in memory: nodes beside it may be at work.
            parked = Run.objects.filter(round=PARKED)
            await until(lambda: run_in_thread(lambda: nested or parked.exists()))
            use = await run_in_thread(BudgetUse.objects.get)
            await run_in_thread(budgets.allow, use.pk, Decimal(9))
            await until(lambda: settled(client, task.id))
        assert sorted(text_of(await client.get(task.id))) == ["last", "quick", "slow"]
    assert (calls, len(model.exchanges)) == (1, 1)


@pytest.mark.parametrize("action", [BudgetAction.REFUSE, BudgetAction.ASK])
async def test_a_graph_that_uses_exactly_its_budget_completes(
    model: ModelServer, action: BudgetAction
) -> None:
    chat = LANGGRAPH.model(model)

    async def speak(state: MessagesState) -> Any:
        return {"messages": [await chat.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState).add_node(speak).add_edge(START, "speak").compile()
    with hosted(graph) as agent:
        async with hosting(), limited(1, action=action):
            task = await Client(agent).send("SAY done")
    assert (task.status.state.word, text_of(task)) == ("completed", ["done"])


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

        def make_input(agent: Any, turn: Any) -> Any:
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

    async def test_a_node_may_call_tools_by_itself(self) -> None:
        def work(state: MessagesState) -> Any:
            id_ = f"call-{len(state['messages'])}"
            call: Any = {"name": "add", "args": {"a": 1}, "id": id_}
            result = ToolMessage("no", tool_call_id=id_, status="error")
            new = [AIMessage("", tool_calls=[call]), result, AIMessage("done")]
            return {"messages": [*state["messages"], *new]}

        graph = StateGraph(MessagesState).add_node(work).add_edge(START, "work").compile()
        with hosted(graph) as agent:
            async with hosting():
                client = Client(agent)
                first = await client.send()
                second = await client.send(context_id=first.context_id)
        told = [await run_in_thread(tools_told, task.id) for task in (first, second)]
        assert told == [
            [
                {"toolCall": {"id": id_, "name": "add", "arguments": {"a": 1}}},
                {"toolResult": {"id": id_, "content": "no", "error": True}},
            ]
            for id_ in ("call-1", "call-5")
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

    @pytest.mark.parametrize(
        "message",
        [{"role": "assistant", "content": "an answer"}, ("ai", "an answer")],
        ids=["dict", "pair"],
    )
    async def test_messages_may_be_written_without_their_class(self, message: Any) -> None:
        def one(state: MessagesState) -> Any:
            return {"messages": message}

        def all_(state: MessagesState) -> Any:
            return {"messages": [*state["messages"], message]}

        graph = StateGraph(MessagesState).add_node(one).add_node("all", all_)
        graph.add_edge(START, "one").add_edge("one", "all")
        with hosted(graph.compile()) as agent:
            async with hosting():
                assert text_of(await Client(agent).send()) == ["an answer", "an answer"]

    async def test_a_node_may_say_something_in_the_place_of_a_call(
        self, model: ModelServer
    ) -> None:
        """As the agent of langgraph.prebuilt does when there are not enough steps left for the call."""

        async def answer(state: MessagesState) -> Any:
            asked = await LANGGRAPH.model(model).ainvoke(state["messages"])
            return {"messages": [AIMessage("I need more steps.", id=asked.id)]}

        graph = StateGraph(MessagesState).add_node(answer).add_edge(START, "answer")
        with hosted(graph.compile()) as agent:
            async with hosting():
                assert text_of(await Client(agent).send("CALL add")) == ["I need more steps."]

    async def test_a_text_of_a_model_is_said_once_if_its_node_makes_a_message_of_it(
        self, model: ModelServer
    ) -> None:
        chain = LANGGRAPH.model(model) | StrOutputParser()

        def answer(state: MessagesState) -> Any:
            return {"messages": [AIMessage(chain.invoke(state["messages"]))]}

        graph = StateGraph(MessagesState).add_node(answer).add_edge(START, "answer")
        with hosted(graph.compile()) as agent:
            async with hosting():
                assert text_of(await Client(agent).send("SAY once and well")) == ["once and well"]

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

    async def test_a_large_file_is_read_in_its_turn_and_not_kept_for_later_ones(self) -> None:
        heard: list[Any] = []

        def answer(state: MessagesState) -> Any:
            content = state["messages"][0].content
            heard.append(content if isinstance(content, str) else content[-1])
            if "ask" in str(state["messages"][-1].content)[:100]:
                interrupt("What of it?")
            return {"messages": [AIMessage("seen")]}

        def go_on(state: MessagesState) -> Any:
            return {}

        graph = StateGraph(MessagesState).add_node(answer).add_node(go_on)
        graph.add_edge(START, "answer").add_edge("answer", "go_on")
        sheet = file(b"x" * 3_000_000, "a.csv", "text/csv")
        with hosted(graph.compile(), default_input_modes=("text/plain", "text/csv")) as agent:
            async with hosting():
                client = Client(agent)
                first = await send_parts(client, Part(text="look"), sheet)
                second = await client.send(context_id=first.context_id)
                asked = await send_parts(client, Part(text="ask"), sheet)
                done = await client.send("this", task_id=asked.id)
        note = {
            "type": "text",
            "text": "[A file of type text/csv with 3000000 bytes was here.]",
        }
        assert [text_of(task) for task in (first, second, done)] == [["seen"]] * 3
        assert asked.status.state.word == "input-required"
        assert [len(block.get("base64", "")) for block in heard] == [4_000_000, 0, 4_000_000, 0]
        assert heard[1] == heard[3] == note

    async def test_a_file_that_is_too_large_for_a_step_is_told_before_the_graph_begins(
        self, settings: Any
    ) -> None:
        settings.A2A_MAX_BODY_BYTES = 30_000_000
        heard: list[Any] = []

        def answer(state: MessagesState) -> Any:
            heard.append(state)
            return {"messages": [AIMessage("seen")]}

        graph = StateGraph(MessagesState).add_node(answer).add_edge(START, "answer")
        with hosted(graph.compile(), default_input_modes=("text/plain", "text/csv")) as agent:
            async with hosting():
                task = await send_parts(Client(agent), file(b"x" * 5_000_000, "a.csv", "text/csv"))
        said = r"This message is too large for this agent: a step of it has \d+ bytes, with files, "
        assert re.fullmatch(said + "and may have 8388608.", status_text(task))
        assert heard == []

    async def test_a_graph_may_be_invoked_in_the_thread_of_a_node(self, model: ModelServer) -> None:
        def speak(state: MessagesState) -> Any:
            return {"messages": [LANGGRAPH.model(model).invoke(state["messages"])]}

        inner: Any = StateGraph(MessagesState).add_node(speak).add_edge(START, "speak").compile()

        def ask(state: MessagesState) -> Any:
            said = inner.invoke({"messages": [("user", "SAY in a thread")]})
            return {"messages": said["messages"][-1:]}

        graph = StateGraph(MessagesState).add_node(ask).add_edge(START, "ask").compile()
        with hosted(graph) as agent:
            async with hosting():
                assert text_of(await Client(agent).send()) == ["in a thread"]


class TestChecks:
    def test_a_graph_that_stops_before_nodes_is_refused(self, model: ModelServer) -> None:
        with hosted(LANGGRAPH.make(model, interrupt_before=["speak"])) as agent:
            (fault,) = agent.check()
        assert fault.id == "a2a_tasks.E051"
        assert fault.msg.startswith("graph has interrupt_before or interrupt_after")


async def test_a_state_that_cannot_be_packed_is_said_in_the_log_in_words() -> None:
    class State(MessagesState):
        count: int

    async def count(state: State) -> Any:
        return {"count": 2**70}

    graph = StateGraph(State).add_node(count).add_edge(START, "count")
    with hosted(graph.compile()) as agent:
        async with hosting():
            task = await Client(agent).send("hello")
    lines = RunLine.objects.filter(logger="turn.state").values_list("text", flat=True)
    (line,) = await run_in_thread(list, lines)
    assert line == (
        'The value of "count" cannot be kept in a checkpoint: Integer exceeds 64-bit range. '
        "The task fails."
    )
    assert (task.status.state.word, status_text(task)) == ("failed", "The agent failed.")
    assert "Integer exceeds 64-bit range" in await trace()
