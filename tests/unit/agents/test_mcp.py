"""Agents that call tools of MCP servers by `turn.mcp`: steps, credentials, the guard."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
import pytest
from agents.mcp import MCPServerStreamableHttp
from aiohttp import web
from fastmcp.client.transports import StreamableHttpTransport
from mcp import Client
from mcp.server.lowlevel import Server
from mcp_types import ListToolsResult
from pydantic_ai.mcp import MCPToolset
from pytest_django import Settings

from a2a_tasks.agents import Agent, AgentError, Journal, Skill, Turn, guarded_transport, mcp
from a2a_tasks.agents.mcp import McpServer, find_flaws, find_server
from a2a_tasks.caller import Caller
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.testing import Talk
from tests.support.mcp_peer import HEADERS, TOKEN, Peer, serving
from tests.support.ports import free_port


@pytest.fixture
async def peer(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Peer]:
    """The server, declared as `bank` for all tenants."""
    monkeypatch.setenv("BANK_TOKEN", "s3cret")
    settings.A2A_FETCH_ALLOW_HTTP = settings.A2A_FETCH_ALLOW_PRIVATE = True
    async with serving() as made:
        settings.A2A_MCP_SERVERS = str(made.declare(tmp_path))
        yield made


class OddServer:
    """It answers each request but DELETE."""

    answer = b"x" * 1000

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.url = ""
        self._over = asyncio.Event()

    async def __aenter__(self) -> OddServer:
        """Listen."""
        app = web.Application()
        app.router.add_route("*", "/mcp", self._serve)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        port = free_port()
        await web.TCPSite(self._runner, "127.0.0.1", port).start()
        self.url = f"http://127.0.0.1:{port}/mcp"
        return self

    async def __aexit__(self, *_: object) -> None:
        """End."""
        self._over.set()
        await self._runner.cleanup()

    async def _serve(self, request: web.Request) -> web.Response:
        self.asked.append(request.method)
        if request.method == "DELETE":
            await self._over.wait()
        return web.Response(body=self.answer)


class StreamingServer(OddServer):
    """It speaks the version with a handshake, and answers by event streams, as servers of that version do by default."""

    results: Mapping[str, Any] = {
        "initialize": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "library", "version": "1"},
        },
        "tools/list": {"tools": [{"name": "read", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "x" * 2_000_000}]},
    }

    async def _serve(self, request: web.Request) -> web.Response:
        asked = await request.json() if request.method == "POST" else {}
        if "id" not in asked:
            return web.Response(status=202 if asked else 405)
        refusal = {"error": {"code": -32601, "message": "Method not found"}}
        found = self.results.get(asked["method"])
        answer = {"jsonrpc": "2.0", "id": asked["id"], **({"result": found} if found else refusal)}
        event = f"event: message\ndata: {json.dumps(answer)}\n\n"
        return web.Response(text=event, content_type="text/event-stream")


def declare(settings: Settings, folder: Path, text: str) -> None:
    """Write the file of servers."""
    file = folder / "servers.toml"
    file.write_text(text)
    settings.A2A_MCP_SERVERS = str(file)


class Payer(Agent, abstract=True):
    """It looks, and pays what it is told."""

    name, description = "Payer", "Pays."
    skills = [Skill("pay", "Pay", "Pays", tags=["x"])]

    async def run(self, turn: Turn) -> Any:
        """Look and pay."""
        bank = turn.mcp("bank")
        looked = await bank.call_tool("look", {"what": "it"})
        paid = await bank.call_tool("pay", {"amount": int(turn.text)})
        yield f"{looked.content[0].text}, {paid.content[0].text}, {paid.is_error}"  # type: ignore[union-attr]


async def test_a_call_with_effects_is_a_step_and_one_that_reads_is_not(peer: Peer) -> None:
    journal = Journal()
    talk = Talk(Payer, journal=journal)
    answer = await talk.say("7")
    assert answer.text == "saw it, paid 7, False"
    assert peer.calls == ["look it", "pay 7"]
    assert sorted(journal.results) == ["mcp bank", "mcp bank pay 2"]


async def test_a_later_attempt_pays_nothing_twice(peer: Peer) -> None:
    kept = {
        "mcp bank": ["look"],
        "mcp bank pay 2": {"content": [{"type": "text", "text": "paid 7"}]},
    }
    answer = await Talk(Payer, journal=Journal(kept)).say("7")
    assert answer.text == "saw it, paid 7, False"
    assert peer.calls == ["look it"]


async def test_an_error_of_a_tool_is_a_result(peer: Peer) -> None:
    answer = await Talk(Payer).say("-1")
    assert "Error executing tool pay" in answer.text
    assert answer.text.endswith("True")


async def test_a_synchronous_agent_waits_in_its_thread(peer: Peer) -> None:
    class Waiting(Payer, abstract=True):
        def run(self, turn: Turn) -> Any:
            tools = turn.mcp("bank").list_tools().now()
            paid = turn.mcp("bank").call_tool("pay", {"amount": 1}, name="pay once").now()
            return f"{[tool.name for tool in tools]} {paid.content[0].text}"  # type: ignore[union-attr]

    journal = Journal()
    answer = await Talk(Waiting, journal=journal).say("x")
    assert answer.text == "['look', 'pay'] paid 1"
    assert "pay once" in journal.results


async def test_a_server_is_for_all_tenants_or_for_one(
    peer: Peer, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_TOKEN", "acme's")
    other = (
        'url = "https://bank.example.com/mcp"\nheaders = { Authorization = "Bearer ${ACME_TOKEN}" }'
    )
    all_ = f'[servers.bank]\nurl = "{peer.url}"\n{HEADERS}'
    declare(
        settings, tmp_path, f"{all_}\n[tenants.acme.bank]\n{other}\n[tenants.acme.own]\n{other}"
    )
    assert find_server("bank").headers == {"Authorization": TOKEN}
    assert find_server("bank", tenant="other").url == peer.url
    assert find_server("bank", tenant="acme").headers == {"Authorization": "Bearer acme's"}
    assert "acme's" not in repr(find_server("bank", tenant="acme"))
    for tenant in ("", "other"):
        with pytest.raises(AgentError, match="There is no MCP server own here"):
            find_server("own", tenant=tenant)
    caller = Caller(principal="key:x", tenant="other")
    assert (await Talk(Payer, caller=caller).say("7")).text.startswith("saw it")


async def test_the_guard_decides_where_calls_go(peer: Peer, settings: Settings) -> None:
    settings.A2A_FETCH_ALLOW_PRIVATE = False
    answer = await Talk(Payer).say("7")
    assert answer.state is TaskState.FAILED
    assert answer.text.startswith("The URL of the MCP server bank")
    assert peer.calls == []
    assert peer.refused == 0


async def test_credentials_stay_at_the_origin_of_their_server(peer: Peer) -> None:
    async with find_server("bank").make_client() as client:
        elsewhere = peer.url.replace("127.0.0.1", "localhost")
        answer = await client.post(elsewhere, json={})
        assert (answer.status_code, peer.refused) == (401, 1)
        assert (await client.get(peer.url)).status_code != 401


async def test_the_client_is_for_frameworks_too(peer: Peer) -> None:
    """pydantic-ai and the OpenAI Agents SDK take a factory of clients."""
    make = find_server("bank").make_client
    server = MCPServerStreamableHttp(
        {"url": peer.url, "httpx_client_factory": make}, client_session_timeout_seconds=30
    )
    async with server:
        result: Any = await server.call_tool("look", {"what": "here"})
    assert result.content[0].text == "saw here"
    toolset = MCPToolset(StreamableHttpTransport(peer.url, httpx_client_factory=make))
    async with toolset:
        assert await toolset.direct_call_tool("pay", {"amount": 3}) == "paid 3"


async def test_an_answer_without_end_is_cut(peer: Peer, settings: Settings) -> None:
    settings.A2A_FETCH_BYTES = 100
    with pytest.raises(Exception, match=r"100 bytes|Connection closed|error"):
        await Talk(Payer).say("7")


async def test_an_answer_in_a_stream_may_be_as_large_as_another(
    settings: Settings, tmp_path: Path
) -> None:
    """The library refuses events of more than 1 MiB by default."""

    class Reader(Agent, abstract=True):
        name, description = "Reader", "Reads."
        skills = [Skill("read", "Read", "Reads", tags=["x"])]

        async def run(self, turn: Turn) -> Any:
            read = await turn.mcp("library").call_tool("read")
            return f"{len(read.content[0].text)} characters"  # type: ignore[union-attr]

    settings.A2A_FETCH_ALLOW_HTTP = settings.A2A_FETCH_ALLOW_PRIVATE = True
    async with StreamingServer() as library:
        declare(settings, tmp_path, f'[servers.library]\nurl = "{library.url}"\n')
        assert (await Talk(Reader).say("x")).text == "2000000 characters"


async def test_a_list_of_tools_without_end_is_an_error() -> None:
    pages = count()

    async def list_tools(_: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[], next_cursor=str(next(pages)))

    async with Client(Server("endless", on_list_tools=list_tools)) as client:
        with pytest.raises(AgentError, match="more than 100 pages"):
            await mcp._list_tools(client)


def test_the_file_is_checked_at_start(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.A2A_FETCH_ALLOW_HTTP = False
    monkeypatch.delenv("BANK_TOKEN", raising=False)
    assert find_flaws() == []
    declare(settings, tmp_path, f'[servers.bank]\nurl = "https://bank.example.com/mcp"\n{HEADERS}')
    assert find_flaws() == ["bank needs 'BANK_TOKEN'"]
    declare(settings, tmp_path, '[servers.a]\nurl = "http://bank.example.com/mcp"\n[tenants.x.b]\n')
    first, second = find_flaws()
    assert first.startswith("a: ")
    assert second == "b needs 'url'"
    declare(settings, tmp_path, "no TOML")
    assert len(find_flaws()) == 1
    settings.A2A_MCP_SERVERS = "/nowhere.toml"
    assert "nowhere" in find_flaws()[0]


class TestAnOddServer:
    """It keeps its clients waiting, or says too much."""

    @pytest.fixture
    async def odd(self, settings: Settings) -> AsyncIterator[OddServer]:
        settings.A2A_FETCH_ALLOW_HTTP = settings.A2A_FETCH_ALLOW_PRIVATE = True
        async with OddServer() as server:
            yield server

    async def test_that_ends_its_streams_is_asked_again_once_a_second(
        self, odd: OddServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(guarded_transport, "REOPEN_SECONDS", 3600.0)
        async with McpServer("odd", odd.url).make_client() as client:
            assert (await client.get(odd.url)).status_code == 200
            again = asyncio.create_task(client.get(odd.url))
            assert (await client.post(odd.url)).status_code == 200
            again.cancel()
            await asyncio.wait([again])
        assert odd.asked == ["GET", "POST"]

    async def test_that_acknowledges_no_end_does_not_hold_up_the_answer(
        self, odd: OddServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(guarded_transport, "END_SECONDS", 0.01)
        async with McpServer("odd", odd.url).make_client() as client:
            with pytest.raises(httpx2.ConnectError):
                await client.delete(odd.url)

    async def test_says_in_one_call_no_more_than_in_one_answer(
        self, odd: OddServer, settings: Settings
    ) -> None:
        settings.A2A_FETCH_BYTES = 2 * len(odd.answer) - 1
        async with McpServer("odd", odd.url).make_client() as client:
            for _ in range(3):
                assert (await client.post(odd.url)).content == odd.answer
        async with McpServer("odd", odd.url).make_client(once=True) as client:
            assert (await client.post(odd.url)).content == odd.answer
            with pytest.raises(httpx2.ReadError, match="longer than"):
                await client.post(odd.url)

    async def test_has_no_endless_list_of_tools(
        self, peer: Peer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(mcp, "MAX_TOOLS", 1)
        answer = await Talk(Payer).say("7")
        assert answer.state is TaskState.FAILED
        assert answer.text == "The MCP server lists more than 1 tools."
