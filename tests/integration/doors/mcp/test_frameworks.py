"""The clients inside frameworks, with what each does by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from agents.mcp import MCPServerStreamableHttp
from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.function import AgentInfo, FunctionModel

from a2a_doors.mcp import calls
from a2a_tasks.agents import Turn
from a2a_tasks.models import Task
from a2a_tasks.store.db import run_in_thread
from tests.support.agents_under_test import playing

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]


async def ask(site: str, message: str) -> str:
    """What the model of pydantic-ai sees of a call."""

    def model(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        seen = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
        if seen:
            return ModelResponse([TextPart(seen[0].model_response_str())])
        return ModelResponse([ToolCallPart("demo", {"message": message, "data": None})])

    agent = Agent(FunctionModel(model), toolsets=[MCPToolset(f"{site}/mcp")])
    async with agent:
        return (await agent.run("go")).output


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("echo hello", "hello"),
        ("data word", '"said": "word"'),
        ("ask Who?", "call this tool again"),
    ],
)
async def test_pydantic_ai_shows_its_model_the_answer(site: str, message: str, words: str) -> None:
    """It shows the structured content alone, where there is some."""
    assert words in (await ask(site, message)).replace('\\"', '"')


@pytest.mark.thorough
async def test_the_openai_agents_sdk_gives_up_and_gets_the_answer_of_the_same_task(
    site: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for 5 seconds by default, and then its model calls again."""
    settings.A2A_HANG_UP_SECONDS = 0.05
    monkeypatch.setattr(calls, "IMPATIENT", (4.0, 20.0))  # on a busy machine it comes late
    go = asyncio.Event()

    async def run(turn: Turn) -> AsyncIterator[Any]:
        await go.wait()
        yield "done at last"

    with playing(run, slug="slow"):
        async with MCPServerStreamableHttp({"url": f"{site}/mcp"}) as server:
            assert "slow" in [tool.name for tool in await server.list_tools()]
            with pytest.raises(Exception, match=r"(?i)time"):
                await server.call_tool("slow", {"message": "work"})
            await asyncio.sleep(0.3)
            go.set()
            result: Any = await server.call_tool("slow", {"message": "work"})
    assert result.content[0].text == "done at last"
    assert await run_in_thread(Task.objects.count) == 1
