"""What every framework that asks models has in a host: the same tests for each, with a model that counts its requests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from a2a_console.privacy.erasure import erase
from a2a_console.privacy.export import documents
from a2a_console.privacy.principal import Principal
from a2a_tasks.agents import Agent, data
from a2a_tasks.agents.host_extensions import TOOL_EVENTS
from a2a_tasks.caller import Caller
from a2a_tasks.models import (
    BudgetAction,
    BudgetUse,
    Context,
    ConversationItem,
    ConversationList,
    ConversationMemory,
    Event,
    Held,
    Run,
    Step,
    Task,
)
from a2a_tasks.protocol.errors import InvalidParams, TaskNotFound
from a2a_tasks.protocol.lifecycle import EventKind
from a2a_tasks.store import budgets, legal_holds
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.purge import RetentionLimits, purge
from tests.model_server import ModelServer
from tests.support.budgets import LOOP, assert_loop_stops, limited
from tests.support.execution.host import (
    ALICE,
    Client,
    client_state,
    hosting,
    listened,
    not_carried,
    take_away,
    tools_told,
)
from tests.support.execution.waiting import until
from tests.support.frameworks import (
    PAY,
    has_artifacts,
    has_said,
    hosted,
    question_of,
    send_parts,
    shown,
    status_text,
    text_of,
    trace,
    usage_of,
)
from tests.support.model_frameworks import (
    FRAMEWORKS,
    LANGGRAPH,
    RESPONSES,
    Ledger,
    ModelFramework,
)
from tests.support.model_memory import MemoryContract

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]
TOOL = EventKind.TOOL


@pytest.fixture(params=FRAMEWORKS, ids=repr)
def framework(request: pytest.FixtureRequest) -> ModelFramework:
    """A framework."""
    found: ModelFramework = request.param
    return found


@pytest.fixture
def ledger(framework: ModelFramework) -> Ledger:
    """The tools of a test."""
    return Ledger(framework.refusal)


@pytest.fixture
def agent(framework: ModelFramework, model: ModelServer, ledger: Ledger) -> Iterator[Agent]:
    """An agent with tools, of which one asks the client first."""
    tools = (ledger.add, ledger.refuse, ledger.break_down)
    with hosted(framework.make(model, *tools, approved=[ledger.pay])) as found:
        yield found


@pytest.fixture
async def client(agent: Agent) -> AsyncIterator[Client]:
    """A client of the agent in a host."""
    async with hosting():
        yield Client(agent)


def told(events: list[Any]) -> list[Any]:
    """Kinds and bodies of the events of a stream."""
    return [(event.kind, msgspec.json.decode(event.body)) for event in events]


class TestStreaming:
    @pytest.mark.parametrize("framework", [*FRAMEWORKS, *RESPONSES], ids=repr, indirect=True)
    async def test_words_come_while_the_model_speaks(
        self, model: ModelServer, client: Client
    ) -> None:
        stream = await client.stream("SAY 1 PAUSE 2 PAUSE 3 PAUSE 4 PAUSE 5 PAUSE 6")
        lines: list[str] = []
        async for batch in stream.batches(0.5):
            for event in batch or ():
                lines.append(shown(msgspec.json.decode(event.body)).removesuffix(" (last)"))
                if "artifact" in lines[-1]:
                    model.step()  # no word comes before the client has the one before it
        await stream.close()
        pieces = [f"artifact answer +  {n}" for n in range(2, 7)]
        assert lines == ["working", "artifact answer: 1", *pieces, "completed"]
        assert model.counts["requests"] == 1

    @pytest.mark.parametrize("streaming", [True, False])
    async def test_each_answer_of_the_model_is_an_artifact(
        self, framework: ModelFramework, model: ModelServer, ledger: Ledger, *, streaming: bool
    ) -> None:
        with hosted(framework.make(model, ledger.add), streaming=streaming) as agent:
            async with hosting():
                script = 'SAY let me see + CALL add {"a": 1, "b": 2}\nSAY it is $RESULT'
                task = await Client(agent).send(script)
        assert text_of(task) == ["let me see", "it is 3"]
        assert (task.status.state.word, ledger.calls) == ("completed", [(1, 2)])


class TestToolEvents:
    async def test_clients_that_activate_the_extension_see_them_and_others_see_the_rest(
        self, model: ModelServer, client: Client
    ) -> None:
        task = await client.begin('SAY first WAIT + CALL add {"a": 1, "b": 2}\nSAY it is $RESULT')
        await until(lambda: has_artifacts(client, task.id))
        active = await client.subscribe(task.id, extensions=(TOOL_EVENTS.uri,))
        other = await client.subscribe(task.id)
        model.release()
        seen = told(await listened(active))
        tools = [body["status"]["message"]["parts"][0]["data"] for k, body in seen if k is TOOL]
        assert tools == await run_in_thread(tools_told, task.id)
        (id_,) = {about["id"] for event in tools for about in event.values()}
        call, result = tools
        assert call == {"toolCall": {"id": id_, "name": "add", "arguments": {"a": 1, "b": 2}}}
        assert (str(result["toolResult"].pop("content")), result) == (
            "3",
            {"toolResult": {"id": id_, "error": False}},
        )
        assert told(await listened(other)) == [event for event in seen if event[0] is not TOOL]

    @pytest.mark.in_turn("framework", share=3)
    async def test_a_call_that_waits_for_the_client_is_told_once(self, client: Client) -> None:
        task = await client.send(PAY)
        (call,) = await run_in_thread(tools_told, task.id)
        id_ = call["toolCall"]["id"]
        assert call == {"toolCall": {"id": id_, "name": "pay", "arguments": {"amount": 7}}}
        await client.send("yes", task_id=task.id)
        assert await run_in_thread(tools_told, task.id) == [
            call,
            {"toolResult": {"id": id_, "content": "paid 7", "error": False}},
        ]

    async def test_what_a_tool_refuses_is_an_error_that_the_model_is_told(
        self, client: Client, ledger: Ledger
    ) -> None:
        task = await client.send('CALL refuse {"a": 1}\nSAY told: $RESULT')
        _, told_result = await run_in_thread(tools_told, task.id)
        result = told_result["toolResult"]
        assert (result["error"], ledger.calls) == (True, [1])
        assert " ".join(result["content"].split()) in text_of(task)[0]


class TestUsage:
    async def test_it_is_what_the_model_server_counts_over_tools_and_three_resumes(
        self, model: ModelServer, client: Client, ledger: Ledger
    ) -> None:
        calls = "\n".join(f'CALL pay {{"amount": {n}}}' for n in (1, 2, 3))
        task = await client.send(f'CALL add {{"a": 1, "b": 2}}\n{calls}\nSAY done')
        for _ in range(3):
            assert task.status.state.word == "input-required"
            task = await client.send("yes", task_id=task.id)
        assert (text_of(task), ledger.calls) == (["done"], [(1, 2), 1, 2, 3])
        ((name, used),) = (await usage_of(task)).items()
        counts = model.counts
        assert name == "scripted"
        assert used["requests"] == counts["requests"] == 5
        assert used["inputTokens"] == counts["input_tokens"]
        assert used["outputTokens"] == counts["output_tokens"]


class TestMemory(MemoryContract):
    """The contract."""


class TestApproval:
    @pytest.mark.parametrize("framework", [*FRAMEWORKS, RESPONSES[1]], ids=repr, indirect=True)
    async def test_the_answer_goes_to_a_process_that_did_not_ask(
        self, model: ModelServer, agent: Agent, ledger: Ledger
    ) -> None:
        client = Client(agent)
        async with hosting():
            asked = await client.send(PAY)
            assert (asked.status.state.word, ledger.calls) == ("input-required", [])
            text, _, form = question_of(asked)
            assert text == "May I call pay(amount=7)? Please answer yes or no."
            (property_,) = form["form"]["properties"].values()
            assert property_["type"] in ("boolean", ["boolean", "object"])
        async with hosting():
            done = await client.send("Yes.", task_id=asked.id)
        assert (text_of(done), ledger.calls) == (["it is done: paid 7"], [7])
        assert model.counts["requests"] == 2

    async def test_no_is_told_to_the_model_with_its_reason(
        self, framework: ModelFramework, client: Client, ledger: Ledger
    ) -> None:
        asked = await client.send(PAY)
        done = await client.send("No, too much", task_id=asked.id)
        reason = "not paid" if framework is LANGGRAPH else "No, too much"  # its tool asks by itself
        assert (text_of(done), ledger.calls) == ([f"it is done: {reason}"], [])
        _, told_result = await run_in_thread(tools_told, asked.id)
        result = told_result["toolResult"]
        assert (result["content"], result["error"]) == (reason, framework is not LANGGRAPH)

    @pytest.mark.in_turn("framework", share=3)
    async def test_an_answer_that_does_not_fit_is_refused(
        self, model: ModelServer, client: Client, ledger: Ledger
    ) -> None:
        asked = await client.send(PAY)
        with pytest.raises(InvalidParams) as refused:
            await client.send("why?", task_id=asked.id)
        assert "must be yes or no" in refused.value.violations[0][1]
        assert await client.states(asked.id) == "input-required"
        done = await client.send("ok", task_id=asked.id)
        assert (done.status.state.word, ledger.calls) == ("completed", [7])
        assert model.counts["requests"] == 2

    async def test_several_are_one_form_and_the_field_that_does_not_fit_is_named(
        self, client: Client, ledger: Ledger
    ) -> None:
        asked = await client.send('CALL pay {"amount": 7} + CALL pay {"amount": 8}\nSAY done')
        text, _, form = question_of(asked)
        assert text == "May I call pay(amount=7)?\nMay I call pay(amount=8)?"
        first, second = form["form"]["properties"]
        with pytest.raises(InvalidParams) as refused:
            await client.send("yes", task_id=asked.id)
        assert f"must have a data part with {first}, {second}" in str(refused.value.violations)
        for answer, field, fault in [
            ({first: "yes", second: False}, f".{first}", "'yes' is not of type"),
            ({first: True}, f".{second}", "is missing"),
            ({first: True, second: True, "x": True}, "", "Additional properties"),
            (1, "", "1 is not of type 'object'"),
        ]:
            with pytest.raises(InvalidParams) as refused:
                await send_parts(client, data(answer), task_id=asked.id)
            ((path, said),) = refused.value.violations
            assert path == f"message.parts[0].data{field}"
            assert said.startswith(fault)
        done = await send_parts(client, data({first: True, second: False}), task_id=asked.id)
        assert (text_of(done), ledger.calls) == (["done"], [7])

    @pytest.mark.in_turn("framework", share=3)
    async def test_somebody_without_the_right_finds_no_task(
        self, client: Client, ledger: Ledger
    ) -> None:
        asked = await client.send(PAY)
        with pytest.raises(TaskNotFound):
            await Client(client.agent, Caller(principal="user:bob")).send("yes", task_id=asked.id)
        assert (await client.states(asked.id), ledger.calls) == ("input-required", [])


class TestTrouble:
    @pytest.mark.parametrize("streaming", [True, False])
    async def test_it_fails_in_words_for_people_with_a_trace_for_operators(
        self, framework: ModelFramework, model: ModelServer, *, streaming: bool
    ) -> None:
        unfit = "The model gave an answer that cannot be used."
        # LangGraph tells the model of a tool that is not there
        unknown = [] if framework is LANGGRAPH else [("CALL no_such_tool", unfit)]
        with hosted(framework.make(model), streaming=streaming) as agent:
            async with hosting():
                for script, words in [
                    ("FAIL 429", "The model is busy. Please try again later."),
                    ("FAIL 401", "The model cannot be used at present."),
                    ("FAIL 400", "The model refused the request."),
                    ("FAIL 500", "The model did not answer. Please try again later."),
                    ("GARBAGE", unfit),
                    *unknown,
                ]:
                    task = await Client(agent).send(script)
                    assert (task.status.state.word, status_text(task)) == ("failed", words)
                    assert framework.traced in await trace()

    async def test_what_the_client_of_the_model_repeats_succeeds(
        self, framework: ModelFramework, model: ModelServer
    ) -> None:
        with hosted(framework.make(model, retries=1)) as agent:
            async with hosting():
                task = await Client(agent).send("FAIL 503 1 + SAY after all")
        assert text_of(task) == ["after all"]
        assert [one.state for one in model.exchanges] == ["failed", "finished"]

    async def test_a_model_that_never_answers_is_given_up_and_slow_words_are_no_silence(
        self, framework: ModelFramework, model: ModelServer
    ) -> None:
        with hosted(framework.make(model), model_seconds=2.5) as agent:
            async with hosting():
                slow = await Client(agent).send("SLOW 0.6 + SAY 1 2 3 4 5")
                task = await Client(agent).send("NEVER")
                await until(lambda: model.of("left"))
        assert text_of(slow) == ["1 2 3 4 5"]
        assert status_text(task) == "The model did not answer. Please try again later."
        assert "silent for 2.5 s" in await trace()


class TestCancelling:
    async def test_it_stops_the_request_of_the_model_and_leaves_the_conversation(
        self, model: ModelServer, client: Client
    ) -> None:
        first = await client.send("SAY first")
        task = await client.begin("SAY 1 2 WAIT 3", context_id=first.context_id)
        await until(lambda: has_artifacts(client, task.id))
        await client.cancel(task.id)
        await until(lambda: model.of("left"))  # the model waits for `release`: nothing else ends it
        await until(not_carried)
        assert await client_state(client, task.id, "canceled")
        last = await client.send("SAY I heard $USERS", context_id=first.context_id)
        assert text_of(last) == ["I heard 2"]


class TestAnotherAttempt:
    async def test_repeats_no_call_whose_result_was_used_no_text_and_no_event(
        self, model: ModelServer, client: Client, ledger: Ledger
    ) -> None:
        """The run is taken away in the middle of the third answer, as if its process had died."""
        task = await client.begin(
            'SAY first + CALL add {"a": 1, "b": 2} + CALL add {"a": 3, "b": 4}\n'
            'SAY second + CALL add {"a": 5, "b": 6}\nSAY third WAIT and last'
        )
        await until(lambda: has_said(client, task.id, "third"))
        await run_in_thread(take_away, task.id)
        await until(lambda: model.of("left"))
        before = await run_in_thread(tools_told, task.id)
        stream = await client.subscribe(task.id)
        model.release()
        lines = [shown(msgspec.json.decode(e.body)) for e in await listened(stream)]
        await until(lambda: client_state(client, task.id, "completed"))
        assert text_of(await client.get(task.id)) == ["first", "second", "third and last"]
        last = await client.send("SAY I heard $USERS", context_id=task.context_id)
        assert [one.line for one in model.exchanges] == [0, 1, 2, 2, 0]
        assert sorted(ledger.calls) == [(1, 2), (3, 4), (5, 6)]
        assert not [line for line in lines if "first" in line or "second" in line]
        assert len(before) == 6
        assert await run_in_thread(tools_told, task.id) == before
        ((_, used),) = (await usage_of(task)).items()
        assert (used["requests"], text_of(last)) == (3, ["I heard 2"])


KEPT = (Context, ConversationMemory, ConversationList, ConversationItem, Step, Run, Event, Task)


def count_rows() -> int:
    """The rows of all conversations and tasks."""
    return sum(model.objects.count() for model in KEPT)


def purge_all(context: str) -> None:
    """Purge, under a hold of the conversation and after it."""
    Task.objects.update(status_at="2020-01-01T00:00Z")
    Context.objects.update(updated_at="2020-01-01T00:00Z")
    hold, before = legal_holds.lay(Held.CONTEXT, context, "a lawsuit"), count_rows()
    list(purge(RetentionLimits.of(30, 0)))
    assert count_rows() == before
    legal_holds.release(hold.pk)
    list(purge(RetentionLimits.of(30, 0)))


def erase_all(context: str) -> None:
    """Export what there is, and erase it."""
    found = {name: list(rows) for name, rows in documents(Principal(ALICE.principal))}
    assert {row["context"] for row in (*found["memory"], *found["items"])} == {context}
    list(erase(Principal(ALICE.principal)))


class TestRemoval:
    @pytest.mark.in_turn("framework", share=3)  # what they write is removed by the same code
    @pytest.mark.parametrize("remove", [purge_all, erase_all])
    async def test_nothing_of_a_conversation_is_left(self, client: Client, remove: Any) -> None:
        first = await client.send('CALL add {"a": 1, "b": 2}\nSAY $RESULT')
        asked = await client.send(PAY, context_id=first.context_id)
        await client.send("yes", task_id=asked.id)
        if remove is erase_all:  # a task that waits is not purged
            await client.send(PAY, context_id=first.context_id)
        await until(not_carried)
        await run_in_thread(remove, first.context_id)
        assert await run_in_thread(count_rows) == 0


class TestChecks:
    def test_an_agent_is_in_order(self, agent: Agent) -> None:
        assert list(agent.check()) == []

    def test_another_thing_is_no_agent(self, agent: Agent) -> None:
        adapter: Any = type(agent).__base__
        made: Any = type("Wrong", (adapter,), {"abstract": True, adapter.attribute: "text"})
        made.abstract = True
        (fault,) = [check for check in made().check() if check.id == "a2a_tasks.E051"]
        assert fault.msg.startswith(f"{adapter.attribute} is a str, not a")


class TestBudget:
    """A prompt that calls a tool again and again, and a budget of three calls of the model."""

    async def test_stops_a_loop_at_the_limit(self, model: ModelServer, client: Client) -> None:
        await assert_loop_stops(client, model)

    @pytest.mark.in_turn("framework", share=3)
    async def test_asks_an_operator_and_goes_on_without_a_call_twice(
        self, model: ModelServer, client: Client, ledger: Ledger
    ) -> None:
        async with limited(3, action=BudgetAction.ASK):
            task = await client.begin(LOOP)
            asking = BudgetUse.objects.filter(asked_at__isnull=False)
            parked = Run.objects.filter(waits_for_budget__isnull=False, status="queued")
            await until(lambda: run_in_thread(lambda: asking.exists() and parked.exists()))
            assert 3 <= len(model.exchanges) <= 4
            use = await run_in_thread(asking.get)
            await run_in_thread(budgets.allow, use.pk, Decimal(100))
            await until(lambda: client_state(client, task.id, "completed"))
        assert (len(model.exchanges), len(ledger.calls)) == (9, 8)
