"""Crews of CrewAI in a host."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import pytest
from crewai import Agent as CrewMember
from crewai import Crew, Task
from pydantic import BaseModel

from a2a_frameworks.crewai import tools_for
from a2a_tasks.agents import Agent, data, registry
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.testing import converse
from lab.frameworks.begin import begun
from lab.frameworks.contract import assert_said_once
from lab.frameworks.delegation import Delegating
from lab.frameworks.tools import LedgerFile
from tests.model_server import ModelServer
from tests.support.budgets import assert_loop_stops
from tests.support.execution.host import Client, client_state, hosting, runner, tools_told
from tests.support.execution.waiting import until
from tests.support.frameworks import (
    INTERRUPTED,
    has_artifacts,
    has_said,
    question_of,
    status_text,
    text_of,
    usage_of,
)
from tests.support.frameworks import (
    hosted as host_for_a_while,
)

FIND = 'SAY let me see + CALL add {"a": 1, "b": 2}\nSAY it is $RESULT'


class City(BaseModel):
    """A city."""

    name: str


class TestDelegating(Delegating):
    """Agents as tools. A crew calls one after the other."""

    calls_at_once = False

    def make(self, *slugs: str) -> Any:
        """A supervisor."""
        from lab.frameworks.crewai.agents import llm  # noqa: PLC0415 - the model server is up

        about = {"goal": "Answer", "backstory": "You are brief.", "max_retry_limit": 0}
        boss = CrewMember(role="Boss", llm=llm, tools=tools_for(*slugs), **about)
        said = {"expected_output": "An answer.", "agent": boss}
        return Crew(agents=[boss], tasks=[Task(description="Do this.\n{message}\n", **said)])


@pytest.fixture
def find(model: ModelServer, ledger: LedgerFile) -> Callable[[str], Agent]:
    """The agents by their slugs."""
    import_module("lab.frameworks.crewai.agents")

    def find(slug: str) -> Agent:
        found = registry.find_hosted(slug)
        assert found is not None
        return found

    return find


@pytest.fixture
def crew(find: Callable[[str], Agent], hosted: None) -> Client:
    """A client of the crew in a host."""
    return Client(find("crew"))


async def test_words_come_while_the_model_speaks(model: ModelServer, crew: Client) -> None:
    task = await crew.begin("SAY 1 2 WAIT 3")
    await until(lambda: has_said(crew, task.id, "2"))
    model.release()
    await until(lambda: client_state(crew, task.id, "completed"))
    assert text_of(await crew.get(task.id)) == ["1 2 3"]


async def test_a_talk_needs_no_host(find: Callable[[str], Agent]) -> None:
    asked, done = await converse(find("reviewed-crew"), "SAY draft", "yes")
    assert (asked.state.word, done.state.word) == ("input-required", "completed")


async def test_a_budget_stops_a_loop_at_the_limit(model: ModelServer, crew: Client) -> None:
    await assert_loop_stops(crew, model)


async def test_each_answer_is_an_artifact_and_tools_and_usage_are_told(
    model: ModelServer, crew: Client, ledger: LedgerFile
) -> None:
    task = await crew.send(FIND)
    assert text_of(task) == ["let me see", "it is 3"]
    assert ledger.calls == [(1, 2)]
    call, result = await run_in_thread(tools_told, task.id)
    assert (call["toolCall"]["name"], call["toolCall"]["arguments"]) == ("add", {"a": 1, "b": 2})
    assert (result["toolResult"]["content"], result["toolResult"]["error"]) == (3, False)
    ((name, used),) = (await usage_of(task)).items()
    assert "scripted" in name
    assert used["requests"] == model.counts["requests"] == 2
    assert used["inputTokens"] == model.counts["input_tokens"]
    assert used["outputTokens"] == model.counts["output_tokens"]


async def test_half_an_emoji_from_a_tool_or_a_model_costs_no_answer(
    model: ModelServer, crew: Client
) -> None:
    task = await crew.send('CALL halve {"a": 1}\nSAY it \\ud83d is $RESULT')
    (said,) = text_of(task)
    assert said.startswith("it \ufffd is ")
    assert "x\ufffdy" in said


async def test_tokens_of_a_cache_are_a_part_of_the_input(model: ModelServer, crew: Client) -> None:
    task = await crew.send("CACHED 2 + SAY hello")
    ((_, used),) = (await usage_of(task)).items()
    assert (used["inputTokens"], used["cachedTokens"]) == (model.counts["input_tokens"], 2)


async def test_two_at_once_have_the_usage_of_their_own(model: ModelServer, crew: Client) -> None:
    tasks = [await crew.begin(f"SAY {words} WAIT") for words in ("1", "1 2 3")]
    for task, words in zip(tasks, ("1", "3"), strict=True):
        await until(partial(has_said, crew, task.id, words))
    model.release()
    found = []
    for task in tasks:
        await until(partial(client_state, crew, task.id, "completed"))
        ((_, used),) = (await usage_of(await crew.get(task.id))).items()
        found.append((used["requests"], used["inputTokens"], used["outputTokens"]))
    assert found == [(1, one.input_tokens, one.output_tokens) for one in model.exchanges]


async def test_the_second_task_of_a_conversation_has_the_first_as_its_history(
    model: Any, crew: Client
) -> None:
    first = await crew.send("SAY blue")
    await crew.send("SAY green", context_id=first.context_id)
    prompt = model.last[-1][1]
    assert "Earlier: User: SAY blue\nYou: blue\nSAY green" in prompt


async def test_the_client_gives_feedback_until_the_result_is_good(
    model: ModelServer, find: Callable[[str], Agent], ledger: LedgerFile
) -> None:
    client = Client(find("reviewed-crew"))
    async with hosting():
        asked = await client.send(FIND)
    assert asked.status.state.word == "input-required"
    text, form = question_of(asked)[0], question_of(asked)[-1]
    assert text == "Is this good? Please answer yes, or what to do better."
    assert list(form["form"]["properties"]) == ["feedback"]
    async with hosting():  # another runner: nothing is kept in the process
        asked = await client.send("Shorter.\nSAY three", task_id=asked.id)
        assert asked.status.state.word == "input-required"
        done = await client.send("yes", task_id=asked.id)
    assert done.status.state.word == "completed"
    assert text_of(done) == ["let me see", "it is 3", "three"]
    assert model.counts["requests"] == 3
    assert ledger.calls == [(1, 2)]
    ((_, used),) = (await usage_of(done)).items()
    assert used["requests"] == 3


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("FAIL 401", "The model cannot be used at present."),
        ("FAIL 400", "The model refused the request."),
    ],
)
async def test_an_error_of_the_model_has_words(crew: Client, script: str, words: str) -> None:
    task = await crew.send(script)
    assert (task.status.state.word, status_text(task)) == ("failed", words)


async def test_cancelling_stops_the_request(model: ModelServer, crew: Client) -> None:
    task = await crew.begin("SAY 1 2 WAIT 3")
    await until(lambda: has_artifacts(crew, task.id))
    assert (await crew.cancel(task.id)).status.state.word == "canceled"
    await until(lambda: model.of("left"))  # nothing else ends it


async def test_no_call_that_was_used_is_made_again_after_kill_9(
    model: ModelServer, find: Callable[[str], Agent], ledger: LedgerFile
) -> None:
    script = (
        'SAY first + CALL add {"a": 1, "b": 2}\n'
        'SAY second + CALL add {"a": 5, "b": 6}\nSAY third WAIT and last'
    )
    client = Client(find("crew"))
    async with begun("crewai", "crew", script) as (task_id, _):
        await until(lambda: has_said(client, task_id, "third"))
    before = await run_in_thread(tools_told, task_id)
    model.release()
    async with runner():
        await until(lambda: client_state(client, task_id, "completed"))
    task = await client.get(task_id)
    assert text_of(task) == ["first", "second", "third and last"]
    assert sorted(ledger.calls) == [(1, 2), (5, 6)]
    assert [one.line for one in model.exchanges] == [0, 1, 2, 2]
    assert await run_in_thread(tools_told, task_id) == before


@pytest.mark.parametrize(("script", "word"), INTERRUPTED.values(), ids=INTERRUPTED)
async def test_the_text_after_kill_9_is_that_of_an_uninterrupted_run(
    model: ModelServer, find: Callable[[str], Agent], script: str, word: str
) -> None:
    await assert_said_once(find("crew"), "crewai", script, word, model)


async def test_a_structured_result_is_data(
    model: ModelServer, find: Callable[[str], Agent]
) -> None:
    find("crew")
    from lab.frameworks.crewai.agents import answer  # noqa: PLC0415 - the model server is up

    task = answer.model_copy(update={"output_json": City})
    with host_for_a_while(Crew(agents=[answer.agent], tasks=[task])) as agent:
        (said,) = await converse(agent, 'SAY {"name": "Bern"}')
    assert said.artifacts["result-2"][0].data == {"name": "Bern"}


async def test_data_of_the_message_are_inputs(model: Any, find: Callable[[str], Agent]) -> None:
    find("crew")
    from lab.frameworks.crewai.agents import writer  # noqa: PLC0415 - the model server is up

    task = Task(description="About {topic}:\n{message}\n", expected_output="Text", agent=writer)
    with host_for_a_while(Crew(agents=[writer], tasks=[task])) as agent:
        await converse(agent, ["SAY fine", data({"topic": "tea"})])
    assert "About tea:\nSAY fine" in model.last[-1][1]
