"""The contract of frameworks that ask models, in environments of their own. A subclass is the test of a framework."""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar

import pytest

from a2a_tasks.agents import Agent, registry
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.testing import converse
from lab.frameworks.begin import begun
from lab.frameworks.tools import LedgerFile
from tests.model_server import ModelServer
from tests.support.execution.host import Client, client_state, hosting, runner, tools_told
from tests.support.execution.waiting import until
from tests.support.frameworks import (
    INTERRUPTED,
    PAY,
    has_said,
    joined,
    status_text,
    text_of,
    usage_of,
)
from tests.support.model_contract import ModelContract, Traits


async def assert_said_once(
    agent: Agent, folder: str, script: str, word: str, model: ModelServer
) -> None:
    """Kill a process after a word; what a client reads then is what an uninterrupted run says."""
    client = Client(agent)
    async with begun(folder, agent.slug, script) as (task_id, _):
        await until(lambda: has_said(client, task_id, word))
    model.release()
    async with runner():
        await until(lambda: client_state(client, task_id, "completed"))
    async with hosting():
        uninterrupted = text_of(await client.send(script))
    assert uninterrupted[0].startswith(script.split()[1])
    assert text_of(await client.get(task_id)) == uninterrupted
    assert await joined(task_id) == uninterrupted


class Contract(ModelContract):
    """The tests."""

    #: The folder of the framework, and the slug of its agent.
    folder: ClassVar[str]
    slug: ClassVar[str]
    #: In what it differs from others.
    own: ClassVar[Traits] = Traits()

    @pytest.fixture
    def traits(self) -> Traits:
        """In what the framework differs from others."""
        return self.own

    @pytest.fixture
    def agent(self, model: ModelServer, ledger: LedgerFile) -> Agent:
        """The agent of the environment."""
        import_module(f"lab.frameworks.{self.folder}.agents")
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
        self, client: Client, ledger: LedgerFile
    ) -> None:
        task = await client.send('SAY let me see + CALL add {"a": 1, "b": 2}\nSAY it is $RESULT')
        assert text_of(task) == ["let me see", f"it is {self.write(3)}"]
        assert ledger.calls == [(1, 2)]
        call, result = await run_in_thread(tools_told, task.id)
        id_ = call["toolCall"]["id"]
        assert call == {"toolCall": {"id": id_, "name": "add", "arguments": {"a": 1, "b": 2}}}
        assert (result["toolResult"]["id"], result["toolResult"]["error"]) == (id_, False)
        assert "3" in str(result["toolResult"]["content"])

    async def test_half_an_emoji_from_a_tool_or_a_model_costs_no_answer(
        self, client: Client
    ) -> None:
        task = await client.send('CALL halve {"a": 1}\nSAY it \\ud83d is $RESULT')
        (said,) = text_of(task)
        assert said.startswith("it \ufffd is ")
        assert "x\ufffdy" in said

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

    async def test_no_call_that_was_used_is_made_again_after_kill_9(
        self, model: ModelServer, agent: Agent, ledger: LedgerFile
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
        assert sorted(ledger.calls) == [(1, 2), (3, 4), (5, 6)]
        assert [one.line for one in model.exchanges] == [0, 1, 2, 2]
        assert await run_in_thread(tools_told, task_id) == before
        ((_, used),) = (await usage_of(task)).items()
        assert used["requests"] == 3
        async with hosting():
            last = await client.send("SAY I heard $USERS", context_id=context_id)
        assert text_of(last) == ["I heard 2"]

    @pytest.mark.parametrize(("script", "word"), INTERRUPTED.values(), ids=INTERRUPTED)
    async def test_the_text_after_kill_9_is_that_of_an_uninterrupted_run(
        self, model: ModelServer, agent: Agent, script: str, word: str
    ) -> None:
        await assert_said_once(agent, self.folder, script, word, model)
