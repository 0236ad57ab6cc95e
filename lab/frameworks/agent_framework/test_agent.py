"""An agent of the Agent Framework in a host."""

from __future__ import annotations

from typing import Any

from agent_framework import Agent, tool
from agent_framework.anthropic import AnthropicClient
from anthropic import AsyncAnthropic
from pydantic import BaseModel

from a2a_frameworks.agent_framework import tools_for
from a2a_frameworks.agent_framework.call import read_usage
from a2a_tasks.agents import file
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.testing import converse
from lab.frameworks.claude import assert_cache_is_counted
from lab.frameworks.contract import Contract
from lab.frameworks.delegation import Delegating
from tests.model_server import ModelServer
from tests.support.execution.host import Client, hosting, tools_told
from tests.support.frameworks import hosted, text_of, usage_of
from tests.support.model_contract import Traits


class TestAgentFramework(Contract):
    """The contract."""

    folder, slug = "agent_framework", "agent-framework-chat"
    own = Traits(told="Error: Tool call invocation was rejected by user.")


class City(BaseModel):
    """A city."""

    name: str


@tool(approval_mode="never_require")
def refuse(a: int) -> str:
    """Refuse."""
    raise ValueError(f"not {a}")


def make(**about: Any) -> Agent[Any]:
    """An agent that asks the model of the contract's agent."""
    from lab.frameworks.agent_framework.agents import chat  # noqa: PLC0415 - the model server is up

    return Agent(chat.client, name="Other", **about)


class TestDelegating(Delegating):
    """Agents as tools."""

    def make(self, *slugs: str) -> Any:
        """A supervisor."""
        return make(tools=tools_for(*slugs))


async def test_the_cache_of_claude_is_counted(model: ModelServer) -> None:
    base = model.url.removesuffix("/v1")
    asked = AsyncAnthropic(base_url=base, api_key="none", max_retries=0)
    claude = AnthropicClient(model="claude-sonnet-4-5", anthropic_client=asked)
    for streaming in (True, False):
        with hosted(Agent(claude, name="Claude"), streaming=streaming) as agent:
            await assert_cache_is_counted(agent)


async def test_a_structured_result_is_data(model: ModelServer) -> None:
    with hosted(make(default_options={"response_format": City})) as agent:
        (answer,) = await converse(agent, 'SAY {"name":"Bern"}')
    assert answer.artifacts["result-2"][0].data == {"name": "Bern"}


async def test_without_streaming_the_answer_comes_whole(model: ModelServer) -> None:
    with hosted(make(), streaming=False) as agent:
        (answer,) = await converse(agent, "SAY 1 2 3")
    assert [part.text for part in answer.parts] == ["1 2 3"]


async def test_a_tool_that_raises_is_told_to_the_model(model: ModelServer) -> None:
    with hosted(make(tools=[refuse])) as agent:
        async with hosting():
            task = await Client(agent).send('CALL refuse {"a": 1}\nSAY told $RESULT')
    assert text_of(task)[0].startswith("told Error: Function failed.")
    _, result = await run_in_thread(tools_told, task.id)
    assert (result["toolResult"]["error"], result["toolResult"]["content"]) == (True, "not 1")


async def test_the_usage_of_an_agent_that_is_a_tool_is_not_counted(model: ModelServer) -> None:
    inner = make(description="Answers.").as_tool(name="inner")
    with hosted(make(tools=[inner])) as agent:
        async with hosting():
            task = await Client(agent).send('CALL inner {"task": "SAY deep"}\nSAY got $RESULT')
    assert text_of(task) == ["got deep"]
    ((_, used),) = (await usage_of(task)).items()
    assert (used["requests"], model.counts["requests"]) == (2, 3)


async def test_the_model_gets_the_files_of_a_message(model: Any) -> None:
    with hosted(make()) as agent:
        await converse(agent, ["SAY fine", file(b"\x89PNG", "a.png", "image/png")])
    assert "<image_url>" in str(model.last)


def test_tokens_of_a_cache_are_part_of_the_input() -> None:
    apart = {
        "input_token_count": 12,
        "output_token_count": 3,
        "anthropic.cache_read_input_tokens": 5_000,
        "anthropic.cache_creation_input_tokens": 100,
    }
    assert tuple(read_usage(apart).values()) == (5_112, 3, 5_000, 100)
    within = {
        "input_token_count": 5_112,
        "output_token_count": 3,
        "cache_read_input_token_count": 5_000,
        "cache_creation_input_token_count": 100,
    }
    assert read_usage(within) == read_usage(apart)
