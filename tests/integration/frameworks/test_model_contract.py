"""The contract of frameworks that ask models, and what is only tested of those in one environment with the host."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from a2a_console.privacy.erasure import erase
from a2a_console.privacy.export import documents
from a2a_console.privacy.principal import Principal
from a2a_tasks.agents import Agent
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
    HoldKind,
    Run,
    Step,
    Task,
)
from a2a_tasks.protocol.errors import TaskNotFound
from a2a_tasks.protocol.lifecycle import EventKind
from a2a_tasks.store import budgets, legal_holds
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.purge import RetentionLimits, purge
from tests.model_server import ModelServer
from tests.support.budgets import LOOP, limited
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
    INTERRUPTED,
    PAY,
    has_artifacts,
    has_said,
    hosted,
    joined,
    shown,
    status_text,
    text_of,
    trace,
    usage_of,
)
from tests.support.model_contract import ModelContract, Traits
from tests.support.model_frameworks import (
    FRAMEWORKS,
    LANGGRAPH,
    OPENAI_AGENTS,
    PYDANTIC_AI,
    RESPONSES,
    Ledger,
    ModelFramework,
)

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


#: In what frameworks differ from the others. The tool of the graph asks by itself.
TRAITS = {
    LANGGRAPH: Traits("not paid", ("not paid", False), names_calls=False),
    OPENAI_AGENTS: Traits(takes_ids_again=False),
}


@pytest.fixture
def traits(framework: ModelFramework) -> Traits:
    """In what a framework differs from the others."""
    return TRAITS.get(framework, Traits())


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


def ids_told(events: list[Any]) -> list[tuple[str, str]]:
    """Kinds and ids of what was told about tools."""
    return [(kind, about["id"]) for event in events for kind, about in event.items()]


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

    @pytest.mark.in_turn("streaming", share=2)
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


@pytest.mark.parametrize("framework", [PYDANTIC_AI, LANGGRAPH], ids=repr, indirect=True)
class TestRepeatedIds:
    """Servers of models that give one id to several calls: of one answer, of several, or to none."""

    async def test_in_a_later_turn_of_the_task(self, client: Client, ledger: Ledger) -> None:
        pay = 'ID c + CALL add {"a": 1, "b": 2}\nID p + CALL pay {"amount": 7}\n'
        asked = await client.send(f'{pay}ID c + CALL add {{"a": 1, "b": 2}}\nSAY done')
        done = await client.send("yes", task_id=asked.id)
        assert (text_of(done), ledger.calls) == (["done"], [(1, 2), 7, (1, 2)])
        told = ids_told(await run_in_thread(tools_told, asked.id))
        assert [id_ for kind, id_ in told if kind == "toolCall"] == ["c", "p", "c#2"]
        assert [id_ for kind, id_ in told if kind == "toolResult"] == ["c", "p", "c#2"]

    async def test_an_empty_id(self, client: Client, ledger: Ledger) -> None:
        task = await client.send('ID  + CALL add {"a": 1, "b": 2}\nSAY it is $RESULT')
        assert (text_of(task), ledger.calls) == (["it is 3"], [(1, 2)])
        call, result = await run_in_thread(tools_told, task.id)
        assert call["toolCall"]["id"] == result["toolResult"]["id"] != ""


class TestLaxJson:
    async def test_half_an_emoji_from_a_tool_or_a_model_costs_no_answer(
        self, framework: ModelFramework, model: ModelServer, ledger: Ledger
    ) -> None:
        script = 'CALL halve {"a": 1}\nSAY it \\ud83d is $RESULT'
        with hosted(framework.make(model, ledger.halve)) as agent:
            async with hosting():
                task = await Client(agent).send(script)
        assert text_of(task) == ["it \ufffd is x\ufffdy"], await trace()
        _, result = await run_in_thread(tools_told, task.id)
        assert result["toolResult"]["content"] == "x\ufffdy"


class TestContract(ModelContract):
    """The contract."""


@pytest.mark.parametrize("framework", RESPONSES[1:], ids=repr, indirect=True)
class TestResponses:
    """A part of the contract, with OpenAI's newer protocol."""

    write = ModelContract.write
    test_approval = ModelContract.test_the_client_allows_a_call_in_a_process_that_did_not_ask


class TestApproval:
    @pytest.mark.in_turn("framework", share=3)
    async def test_somebody_without_the_right_finds_no_task(
        self, client: Client, ledger: Ledger
    ) -> None:
        asked = await client.send(PAY)
        with pytest.raises(TaskNotFound):
            await Client(client.agent, Caller(principal="user:bob")).send("yes", task_id=asked.id)
        assert (await client.states(asked.id), ledger.calls) == ("input-required", [])


class TestTrouble:
    @pytest.mark.in_turn("streaming", share=2)
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


class TestAnotherAttempt:
    @pytest.mark.parametrize(("script", "word"), INTERRUPTED.values(), ids=INTERRUPTED)
    async def test_says_what_an_uninterrupted_one_says(
        self, model: ModelServer, client: Client, script: str, word: str
    ) -> None:
        task = await client.begin(script)
        await until(lambda: has_said(client, task.id, word))
        await run_in_thread(take_away, task.id)
        await until(lambda: model.of("left"))
        model.release()
        await until(lambda: client_state(client, task.id, "completed"))
        uninterrupted = text_of(await client.send(script))
        assert uninterrupted[0].startswith(script.split()[1])
        assert text_of(await client.get(task.id)) == uninterrupted
        assert await joined(task.id) == uninterrupted

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
    hold, before = legal_holds.lay(HoldKind.CONTEXT, context, "a lawsuit"), count_rows()
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
