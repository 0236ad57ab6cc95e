"""What every framework that asks models has in a host: the same tests for each. A subclass is the test of some frameworks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from a2a_tasks.agents import Agent, data
from a2a_tasks.protocol.errors import InvalidParams
from a2a_tasks.store.db import run_in_thread
from tests.model_server import ModelServer
from tests.support.budgets import assert_loop_stops
from tests.support.execution.host import (
    Client,
    client_state,
    hosting,
    not_carried,
    tools_told,
)
from tests.support.execution.waiting import until
from tests.support.frameworks import (
    PAY,
    has_artifacts,
    has_said,
    question_of,
    send_parts,
    status_text,
    text_of,
    usage_of,
)

__all__ = ["ModelContract", "Traits"]

REFUSED = "No, too much"


@dataclass(frozen=True)
class Traits:
    """In what a framework differs from the others."""

    #: What the model is told of a call that the client refused.
    told: str = REFUSED
    #: The result of that call, and whether it is an error.
    result: tuple[Any, bool] = (REFUSED, True)
    #: It takes an id of a call that the model has given before.
    takes_ids_again: bool = True
    #: Its questions name the tools and their arguments.
    names_calls: bool = True
    #: One agent works for several turns at once.
    works_at_once: bool = True


class ModelContract:
    """The tests. They need the fixtures `model`, `agent`, `client` of that agent in a host, `traits`, and `ledger`.

    The agent has the tools `add`, `halve` and `pay`, which note their calls in the ledger; `pay` asks the client first.
    """

    def write(self, result: Any) -> str:
        """Return the result of a tool as the model gets it."""
        return str(result)

    async def test_the_second_task_of_a_conversation_knows_the_first(self, agent: Agent) -> None:
        client = Client(agent)
        async with hosting():
            first = await client.send("SAY I heard $USERS")
        async with hosting():  # another runner: nothing is kept in the process
            second = await client.send("SAY I heard $USERS", context_id=first.context_id)
            failed = await client.send("FAIL 400", context_id=first.context_id)
            third = await client.send("SAY I heard $USERS", context_id=first.context_id)
            other = await client.send("SAY I heard $USERS")
        said = [text_of(task) for task in (first, second, third, other)]
        assert said == [["I heard 1"], ["I heard 2"], ["I heard 3"], ["I heard 1"]]
        assert failed.status.state.word == "failed"

    async def test_other_tasks_of_the_conversation_go_on_while_one_waits(
        self, client: Client
    ) -> None:
        asked = await client.send(PAY)
        other = await client.send("SAY I heard $USERS", context_id=asked.context_id)
        done = await client.send("yes", task_id=asked.id)
        last = await client.send("SAY I heard $USERS", context_id=asked.context_id)
        assert [text_of(task)[0] for task in (other, done, last)] == [
            "I heard 1",
            f"it is done: {self.write('paid 7')}",
            "I heard 3",
        ]

    async def test_each_call_is_made_and_recorded_once_if_the_model_repeats_ids(
        self, model: ModelServer, client: Client, ledger: Any, traits: Traits
    ) -> None:
        calls = [f'ID add:0 + CALL add {{"a": {a}, "b": 2}}' for a in (1, 3, 3)]
        task = await client.send("\n".join([*calls, "SAY it is $RESULT"]))
        if not traits.takes_ids_again:
            assert status_text(task) == "The model gave an answer that cannot be used."
            assert ledger.calls == [(1, 2)]
            return
        assert text_of(task) == [f"it is {self.write(5)}"]
        assert ledger.calls == [(1, 2), (3, 2), (3, 2)]
        told = await run_in_thread(tools_told, task.id)
        ids = [(kind, about["id"]) for event in told for kind, about in event.items()]
        names = ["add:0", "add:0#2", "add:0#3"]
        assert ids == [(kind, n) for n in names for kind in ("toolCall", "toolResult")]
        assert {id_ for ids in model.calls_read for id_ in ids} == {"add:0"}

    async def test_usage_is_what_the_model_server_counts_over_tools_and_three_resumes(
        self, model: ModelServer, client: Client, ledger: Any
    ) -> None:
        calls = "\n".join(f'CALL pay {{"amount": {n}}}' for n in (1, 2, 3))
        task = await client.send(f'CALL add {{"a": 1, "b": 2}}\n{calls}\nSAY done')
        for _ in range(3):
            assert task.status.state.word == "input-required"
            task = await client.send("yes", task_id=task.id)
        assert (text_of(task), ledger.calls) == (["done"], [(1, 2), 1, 2, 3])
        ((name, used),) = (await usage_of(task)).items()
        counts = model.counts
        assert "scripted" in name
        assert used["requests"] == counts["requests"] == 5
        assert used["inputTokens"] == counts["input_tokens"]
        assert used["outputTokens"] == counts["output_tokens"]

    async def test_usage_of_two_at_once_is_that_of_each(
        self, model: ModelServer, client: Client, traits: Traits
    ) -> None:
        tasks = [await client.begin(f"SAY {words} WAIT") for words in ("1", "1 2 3")]
        await until(partial(has_said, client, tasks[0].id, "1"))
        if traits.works_at_once:
            await until(partial(has_said, client, tasks[1].id, "3"))
        model.release()
        found = {}
        for task in tasks:
            await until(partial(client_state, client, task.id, "completed"))
            ((_, used),) = (await usage_of(await client.get(task.id))).items()
            found[used["inputTokens"]] = used["outputTokens"]
        assert found == {one.input_tokens: one.output_tokens for one in model.exchanges}

    async def test_a_budget_stops_a_loop_at_the_limit(
        self, model: ModelServer, client: Client
    ) -> None:
        await assert_loop_stops(client, model)

    async def test_the_client_allows_a_call_in_a_process_that_did_not_ask(
        self, model: ModelServer, agent: Agent, ledger: Any, traits: Traits
    ) -> None:
        client = Client(agent)
        async with hosting():
            asked = await client.send(PAY)
        assert (asked.status.state.word, ledger.calls) == ("input-required", [])
        text, about, form = question_of(asked)
        assert text == "May I call pay(amount=7)? Please answer yes or no."
        ((id_, property_),) = form["form"]["properties"].items()
        assert property_["type"] in ("boolean", ["boolean", "object"])
        if traits.names_calls:
            (call,) = about["calls"]
            assert (call["id"], call["tool"], call["arguments"]) == (id_, "pay", {"amount": 7})
        async with hosting():  # another runner: nothing is kept in the process
            done = await client.send("Yes.", task_id=asked.id)
        assert text_of(done) == [f"it is done: {self.write('paid 7')}"]
        assert (model.counts["requests"], ledger.calls) == (2, [7])
        told = await run_in_thread(tools_told, asked.id)
        assert [kind for event in told for kind in event] == ["toolCall", "toolResult"]

    async def test_no_is_told_to_the_model(
        self, client: Client, ledger: Any, traits: Traits
    ) -> None:
        asked = await client.send(PAY)
        done = await client.send(REFUSED, task_id=asked.id)
        assert (text_of(done), ledger.calls) == ([f"it is done: {traits.told}"], [])
        _, told = await run_in_thread(tools_told, asked.id)
        assert (told["toolResult"]["content"], told["toolResult"]["error"]) == traits.result

    async def test_an_answer_that_does_not_fit_is_refused(
        self, model: ModelServer, client: Client, ledger: Any
    ) -> None:
        asked = await client.send(PAY)
        with pytest.raises(InvalidParams) as refused:
            await client.send("why?", task_id=asked.id)
        assert "must be yes or no" in refused.value.violations[0][1]
        assert await client.states(asked.id) == "input-required"
        done = await client.send("ok", task_id=asked.id)
        assert (done.status.state.word, ledger.calls) == ("completed", [7])
        assert model.counts["requests"] == 2

    async def test_several_calls_are_one_form_and_the_field_that_does_not_fit_is_named(
        self, client: Client, ledger: Any
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
            ({first: True, second: True, "x": True}, "", "has no property"),
            (1, "", "1 is not of type 'object'"),
        ]:
            with pytest.raises(InvalidParams) as refused:
                await send_parts(client, data(answer), task_id=asked.id)
            ((path, said),) = refused.value.violations
            assert path == f"message.parts[0].data{field}"
            assert said.startswith(fault)
        done = await send_parts(client, data({first: True, second: False}), task_id=asked.id)
        assert (text_of(done), ledger.calls) == (["done"], [7])

    async def test_two_calls_of_one_answer_with_one_id_have_a_field_each(
        self, client: Client, ledger: Any
    ) -> None:
        asked = await client.send(
            'ID p + CALL pay {"amount": 7} + CALL pay {"amount": 8}\nSAY done'
        )
        _, _, form = question_of(asked)
        first, second = form["form"]["properties"]
        done = await send_parts(client, data({first: False, second: True}), task_id=asked.id)
        assert (text_of(done), ledger.calls) == (["done"], [8])

    async def test_an_approval_is_not_one_of_a_later_call_with_the_same_id(
        self, client: Client, ledger: Any, traits: Traits
    ) -> None:
        script = 'ID p + CALL pay {"amount": 7}\nID p + CALL pay {"amount": 8}\nSAY done'
        asked = await client.send(script)
        again = await client.send("yes", task_id=asked.id)
        if traits.takes_ids_again:
            assert question_of(again)[0] == "May I call pay(amount=8)? Please answer yes or no."
            done = await client.send("no", task_id=asked.id)
            assert text_of(done) == ["done"]
        else:
            assert status_text(again) == "The model gave an answer that cannot be used."
        assert ledger.calls == [7]

    async def test_cancelling_stops_the_request_and_leaves_the_conversation(
        self, model: ModelServer, client: Client
    ) -> None:
        first = await client.send("SAY first")
        task = await client.begin("SAY 1 2 WAIT 3", context_id=first.context_id)
        await until(lambda: has_artifacts(client, task.id))
        assert (await client.cancel(task.id)).status.state.word == "canceled"
        await until(lambda: model.of("left"))  # the model waits for `release`: nothing else ends it
        await until(not_carried)
        assert await client_state(client, task.id, "canceled")
        last = await client.send("SAY I heard $USERS", context_id=first.context_id)
        assert text_of(last) == ["I heard 2"]
