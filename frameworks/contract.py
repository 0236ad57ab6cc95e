"""What every framework that asks models has in a host: the same tests for each. A subclass is the test of a framework."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import pytest

from a2a_tasks.agents import Agent, data, registry
from a2a_tasks.protocol.errors import InvalidParams
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.testing import converse
from frameworks.begin import begun
from tests.model_server import ModelServer
from tests.support.budgets import assert_loop_stops
from tests.support.execution.host import Client, client_state, hosting, runner, tools_told
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
from tests.support.model_memory import MemoryContract


class Contract(MemoryContract):
    """The tests."""

    #: The folder of the framework, and the slug of its agent.
    folder: ClassVar[str]
    slug: ClassVar[str]
    #: The content of the result of a call that the client refused with this answer.
    refusal: ClassVar[tuple[str, Any]] = ("No, too much", "No, too much")
    #: What the model is told then.
    told: ClassVar[str] = "No, too much"

    @pytest.fixture
    def agent(self, model: ModelServer, ledger: Path) -> Agent:
        """The agent of the environment."""
        import_module(f"frameworks.{self.folder}.agents")
        found = registry.find_hosted(self.slug)
        assert found is not None
        return found

    @pytest.fixture
    def client(self, agent: Agent, hosted: None) -> Client:
        """A client of the agent in a host."""
        return Client(agent)

    async def test_words_come_while_the_model_speaks(
        self, model: ModelServer, client: Client
    ) -> None:
        task = await client.begin("SAY 1 2 WAIT 3")
        await until(lambda: has_said(client, task.id, "2"))
        assert model.of("running")
        model.release()
        await until(lambda: client_state(client, task.id, "completed"))
        assert text_of(await client.get(task.id)) == ["1 2 3"]

    async def test_a_talk_needs_no_host(self, agent: Agent) -> None:
        asked, done = await converse(agent, PAY, "yes")
        assert (asked.state.word, done.state.word) == ("input-required", "completed")
        assert done.text == f"it is done: {self.write('paid 7')}"

    async def test_each_answer_of_the_model_is_an_artifact_and_tools_are_told(
        self, client: Client, ledger: Path
    ) -> None:
        task = await client.send('SAY let me see + CALL add {"a": 1, "b": 2}\nSAY it is $RESULT')
        assert text_of(task) == ["let me see", f"it is {self.write(3)}"]
        assert ledger.read_text() == "add 1 2\n"
        call, result = await run_in_thread(tools_told, task.id)
        id_ = call["toolCall"]["id"]
        assert call == {"toolCall": {"id": id_, "name": "add", "arguments": {"a": 1, "b": 2}}}
        assert (result["toolResult"]["id"], result["toolResult"]["error"]) == (id_, False)
        assert "3" in str(result["toolResult"]["content"])

    async def test_usage_is_what_the_model_server_counts(
        self, model: ModelServer, client: Client
    ) -> None:
        task = await client.send(f'CALL add {{"a": 1, "b": 2}}\n{PAY}')
        task = await client.send("yes", task_id=task.id)
        assert text_of(task) == [f"it is done: {self.write('paid 7')}"]
        ((name, used),) = (await usage_of(task)).items()
        assert "scripted" in name
        assert used["requests"] == model.counts["requests"] == 3
        assert used["inputTokens"] == model.counts["input_tokens"]
        assert used["outputTokens"] == model.counts["output_tokens"]

    async def test_a_budget_stops_a_loop_at_the_limit(
        self, model: ModelServer, client: Client
    ) -> None:
        await assert_loop_stops(client, model)

    async def test_the_client_allows_a_call_in_another_runner(
        self, model: ModelServer, agent: Agent, ledger: Path
    ) -> None:
        client = Client(agent)
        async with hosting():
            asked = await client.send(PAY)
        assert (asked.status.state.word, ledger.exists()) == ("input-required", False)
        text, about, form = question_of(asked)
        assert text == "May I call pay(amount=7)? Please answer yes or no."
        (call,) = about["calls"]
        assert (call["tool"], call["arguments"]) == ("pay", {"amount": 7})
        assert list(form["form"]["properties"]) == [call["id"]]
        async with hosting():
            done = await client.send("Yes.", task_id=asked.id)
        assert text_of(done) == [f"it is done: {self.write('paid 7')}"]
        assert ledger.read_text() == "pay 7\n"
        assert model.counts["requests"] == 2
        told = await run_in_thread(tools_told, asked.id)
        assert [kind for event in told for kind in event] == ["toolCall", "toolResult"]

    async def test_the_client_refuses_a_call(self, client: Client, ledger: Path) -> None:
        asked = await client.send(PAY)
        with pytest.raises(InvalidParams):
            await client.send("why?", task_id=asked.id)
        answer, result = self.refusal
        done = await client.send(answer, task_id=asked.id)
        assert text_of(done) == [f"it is done: {self.told}"]
        assert not ledger.exists()
        _, told = await run_in_thread(tools_told, asked.id)
        assert (told["toolResult"]["content"], told["toolResult"]["error"]) == (result, True)

    async def test_several_calls_are_one_form(self, client: Client, ledger: Path) -> None:
        asked = await client.send('CALL pay {"amount": 7} + CALL pay {"amount": 8}\nSAY done')
        _, _, form = question_of(asked)
        first, second = form["form"]["properties"]
        done = await send_parts(client, data({first: True, second: False}), task_id=asked.id)
        assert (text_of(done), ledger.read_text()) == (["done"], "pay 7\n")

    @pytest.mark.parametrize(
        ("script", "words"),
        [
            ("FAIL 429", "The model is busy. Please try again later."),
            ("FAIL 401", "The model cannot be used at present."),
            ("FAIL 400", "The model refused the request."),
            ("FAIL 500", "The model did not answer. Please try again later."),
        ],
    )
    async def test_an_error_of_the_model_has_words(
        self, client: Client, script: str, words: str
    ) -> None:
        task = await client.send(script)
        assert (task.status.state.word, status_text(task)) == ("failed", words)

    async def test_a_model_that_never_answers_is_given_up(
        self, model: ModelServer, client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(type(client.agent), "model_seconds", 1.0)
        task = await client.send("NEVER")
        assert status_text(task) == "The model did not answer. Please try again later."
        await until(lambda: model.of("left"))

    async def test_cancelling_stops_the_request_and_leaves_the_conversation(
        self, model: ModelServer, client: Client
    ) -> None:
        first = await client.send("SAY first")
        task = await client.begin("SAY 1 2 WAIT 3", context_id=first.context_id)
        await until(lambda: has_artifacts(client, task.id))
        assert (await client.cancel(task.id)).status.state.word == "canceled"
        await until(lambda: model.of("left"))  # nothing else ends it
        last = await client.send("SAY I heard $USERS", context_id=first.context_id)
        assert text_of(last) == ["I heard 2"]

    async def test_no_call_that_was_used_is_made_again_after_kill_9(
        self, model: ModelServer, agent: Agent, ledger: Path
    ) -> None:
        script = (
            'SAY first + CALL add {"a": 1, "b": 2} + CALL add {"a": 3, "b": 4}\n'
            'SAY second + CALL add {"a": 5, "b": 6}\nSAY third WAIT and last'
        )
        client = Client(agent)
        async with begun(self.folder, self.slug, script) as (task_id, context_id):
            await until(lambda: has_said(client, task_id, "third"))
        before = await run_in_thread(tools_told, task_id)
        model.release()
        async with runner():
            await until(lambda: client_state(client, task_id, "completed"))
        task: Any = await client.get(task_id)
        assert text_of(task) == ["first", "second", "third and last"]
        assert sorted(ledger.read_text().splitlines()) == ["add 1 2", "add 3 4", "add 5 6"]
        assert [one.line for one in model.exchanges] == [0, 1, 2, 2]
        assert await run_in_thread(tools_told, task_id) == before
        ((_, used),) = (await usage_of(task)).items()
        assert used["requests"] == 3
        async with hosting():
            last = await client.send("SAY I heard $USERS", context_id=context_id)
        assert text_of(last) == ["I heard 2"]
