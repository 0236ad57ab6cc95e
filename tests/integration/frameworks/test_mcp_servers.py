"""Tools of an MCP server, a process that the framework starts: durable steps that are told as other tools are."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from agents.mcp import MCPServerStdio
from fastmcp.client.transports import StdioTransport
from pydantic_ai.mcp import MCPToolset

from a2a_tasks.store.db import run_in_thread
from tests import ROOT
from tests.model_server import ModelServer
from tests.support.execution.host import Client, client_state, hosting, take_away, tools_told
from tests.support.execution.waiting import until
from tests.support.frameworks import has_said, hosted, text_of
from tests.support.model_frameworks import OPENAI_AGENTS, PYDANTIC_AI
from tests.support.thorough import thorough

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]


#: The server refuses to greet the last one.
NAMES = ["Ada", "Bob", "Nobody"]


@pytest.fixture(params=[thorough(PYDANTIC_AI), OPENAI_AGENTS], ids=repr)
def thing(request: pytest.FixtureRequest, model: ModelServer, ledger: Path) -> Any:
    """An agent with the server."""
    arguments = ["-m", "tests.support.mcp_server", str(ledger)]
    if request.param is PYDANTIC_AI:
        transport = StdioTransport(sys.executable, arguments, cwd=str(ROOT), keep_alive=False)
        return PYDANTIC_AI.make(
            model, toolsets=[MCPToolset(transport, id="greeter", init_timeout=60, read_timeout=60)]
        )
    params: Any = {"command": sys.executable, "args": arguments, "cwd": ROOT}
    server = MCPServerStdio(params, client_session_timeout_seconds=60)
    return OPENAI_AGENTS.make(model, mcp_servers=[server])


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """The file that the server writes to."""
    path = tmp_path / "ledger"
    path.touch()
    return path


def noted(ledger: Path) -> list[str]:
    """What the server has written."""
    return ledger.read_text().split()


def has_ended(ledger: Path) -> bool:
    """Are all processes of the server gone?"""
    for pid in (int(line.partition("-")[2]) for line in noted(ledger) if "pid" in line):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 0)
            return False
    return True


async def test_a_call_is_a_step_and_is_told_and_the_server_ends_with_the_run(
    thing: Any, model: ModelServer, ledger: Path
) -> None:
    with hosted(thing) as agent:
        assert list(agent.check()) == []
        async with hosting():
            client = Client(agent)
            task = await client.begin('CALL greet {"name": "Ada"}\nSAY $RESULT WAIT and bye')
            await until(lambda: has_said(client, task.id, "hello"))
            await run_in_thread(take_away, task.id)
            await until(lambda: model.of("left"))
            model.release()
            await until(lambda: client_state(client, task.id, "completed"))
            assert "hello Ada" in text_of(await client.get(task.id))[-1]
            await until(lambda: has_ended(ledger))
        call, result = await run_in_thread(tools_told, task.id)
    assert (call["toolCall"]["name"], call["toolCall"]["arguments"]) == ("greet", {"name": "Ada"})
    assert "hello Ada" in str(result["toolResult"]["content"])
    assert noted(ledger).count("Ada") == 1


@pytest.mark.thorough
async def test_runs_at_the_same_time_share_a_server_and_the_model_is_told_of_its_errors(
    thing: Any, ledger: Path
) -> None:
    with hosted(thing) as agent:
        async with hosting():
            client = Client(agent)
            scripts = [f'CALL greet {{"name": "{name}"}}\nSAY $RESULT' for name in NAMES]
            said = await asyncio.gather(*map(client.send, scripts))
            await until(lambda: has_ended(ledger))
    assert ["hello" in text_of(task)[0] for task in said] == [True, True, False]
    assert sorted(name for name in noted(ledger) if "pid" not in name) == NAMES
