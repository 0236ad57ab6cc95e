"""Published clients of OpenAI's API over a socket: the official one, and those inside frameworks, with what each does by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import agents
import httpx2 as httpx
import openai
import pytest
from langchain_openai import ChatOpenAI
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pytest_django import Settings

from a2a_tasks.access.api_keys import issue
from a2a_tasks.agents import Turn
from a2a_tasks.models import Task
from a2a_tasks.store.db import run_in_thread
from tests.support.agents_under_test import playing
from tests.support.doors import serving

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]


@pytest.fixture
async def at() -> AsyncIterator[dict[str, Any]]:
    """Where clients find the API, and their key."""
    key = (await run_in_thread(issue, "test")).key
    async with serving() as url:
        yield {"base_url": f"{url}/v1", "api_key": key}


@pytest.fixture
async def official(at: dict[str, Any]) -> AsyncIterator[openai.AsyncOpenAI]:
    """The client that the frameworks use, too."""
    async with openai.AsyncOpenAI(**at) as client:
        yield client


@pytest.fixture
def provider(official: openai.AsyncOpenAI) -> OpenAIProvider:
    """The same, for pydantic-ai."""
    return OpenAIProvider(openai_client=official)


async def count() -> int:
    return await run_in_thread(Task.objects.count)


def ask(text: str) -> Any:
    return [{"role": "user", "content": text}]


async def test_the_official_client_without_asyncio(at: dict[str, Any]) -> None:
    def talk() -> tuple[str | None, str]:
        with openai.OpenAI(**at) as client:
            create = client.chat.completions.create
            whole = create(model="demo", messages=ask("echo hi"))
            chunks = create(model="demo", messages=ask("chunks 3"), stream=True)
            text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
            return whole.choices[0].message.content, text

    whole, text = await asyncio.to_thread(talk)
    assert whole == "hi"
    assert [piece.split(";")[0] for piece in text.split("#")[1:]] == ["0", "1", "2"]


async def test_langchain_waits_while_empty_deltas_come(
    at: dict[str, Any], settings: Settings
) -> None:
    """It gives up a while after the last chunk; comments do not count."""
    settings.A2A_KEEPALIVE_SECONDS = 0.1
    async with httpx.AsyncClient() as http:
        model = ChatOpenAI(model="demo", stream_chunk_timeout=3.0, http_async_client=http, **at)
        text = "".join([str(chunk.content) async for chunk in model.astream("sleep 4")])
    assert text == "Slept 4 s"


async def test_pydantic_ai_asks_once_also_if_the_agent_says_nothing(
    provider: OpenAIProvider,
) -> None:
    """It takes an empty answer for none, and asks again."""

    async def run(turn: Turn) -> None:
        """Say nothing."""

    with playing(run, slug="silent"):
        model = OpenAIChatModel("silent", provider=provider)
        done = await PydanticAgent(model).run("go")
    assert done.output == "Done, without a text."
    assert await count() == 1


async def test_pydantic_ai_reads_a_stream_with_its_usage(
    provider: OpenAIProvider,
) -> None:
    async def run(turn: Turn) -> str:
        await turn.usage(model="m", input_tokens=3, output_tokens=4)
        return "hi"

    with playing(run, slug="counted", reports_usage=True):
        model = OpenAIChatModel("counted", provider=provider)
        async with PydanticAgent(model).run_stream("go") as done:
            assert await done.get_output() == "hi"
    assert (done.usage.input_tokens, done.usage.output_tokens) == (3, 4)


async def test_a_conversation_in_pydantic_ai_is_one_context(
    provider: OpenAIProvider,
) -> None:
    agent = PydanticAgent(OpenAIChatModel("demo", provider=provider))
    first = await agent.run("echo one", instructions="Be brief.")
    await agent.run("echo two", message_history=first.all_messages())
    contexts = await run_in_thread(lambda: list(Task.objects.values_list("context")))
    assert len(contexts) == 2
    assert len(set(contexts)) == 1


async def test_the_openai_agents_sdk_streams(official: openai.AsyncOpenAI) -> None:
    model = agents.OpenAIChatCompletionsModel("demo", official)
    agent = agents.Agent(name="a", model=model)
    config = agents.RunConfig(tracing_disabled=True)
    done = agents.Runner.run_streamed(agent, "echo hi", run_config=config)
    async for _ in done.stream_events():
        pass
    assert done.final_output == "hi"


async def test_a_cancelled_call_stops_the_agent(
    official: openai.AsyncOpenAI, settings: Settings
) -> None:
    settings.A2A_HANG_UP_SECONDS = 0.05
    began, stopped = asyncio.Event(), asyncio.Event()

    async def run(turn: Turn) -> AsyncIterator[Any]:
        began.set()
        try:
            await asyncio.Event().wait()
            yield ""
        finally:
            stopped.set()

    with playing(run, slug="endless"):
        create = official.chat.completions.create
        call = asyncio.create_task(create(model="endless", messages=ask("go")))
        await began.wait()
        call.cancel()
        async with asyncio.timeout(20):
            await stopped.wait()
