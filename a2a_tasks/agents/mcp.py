"""MCP servers for agents: operators declare them, with credentials from the environment, for all tenants or for some.

The file of A2A_MCP_SERVERS is TOML: a table `servers.<name>`, or `tenants.<tenant>.<name>` for one tenant alone.
"""

from __future__ import annotations

import asyncio
import functools
import os
import tomllib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, TypeVar

from a2a_tasks.agents.faults import AgentError, CallRefused
from a2a_tasks.agents.http import guard
from a2a_tasks.agents.later import Later
from a2a_tasks.agents.steps import DurableStep, Journal
from a2a_tasks.conf import conf, of_settings
from a2a_tasks.outbound import AddressRefused

if TYPE_CHECKING:  # the libraries have 50 MiB, and few agents call tools
    import httpx2
    from mcp import Client
    from mcp_types import CallToolResult, Tool

__all__ = ["McpServer", "McpTools", "find_flaws", "find_server"]

#: Most pages of a list of tools that are read, and most tools on them.
MAX_PAGES, MAX_TOOLS = 100, 10_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class McpServer:
    """A server that operators have declared."""

    name: str
    url: str
    #: The headers with its credentials.
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def make_client(
        self,
        headers: Mapping[str, str] | None = None,
        timeout: Any = None,
        auth: Any = None,
        *,
        once: bool = False,
        **more: Any,
    ) -> httpx2.AsyncClient:
        """Return a client whose calls pass the guard, with the credentials: the factory that frameworks ask for.

        `once`: it is for one call of a tool (`GuardedTransport`).
        Raises CallRefused for a URL that the guard does not allow.
        """
        import httpx2  # noqa: PLC0415 - see above

        from a2a_tasks.agents.guarded_transport import GuardedTransport  # noqa: PLC0415

        try:
            guard().check(self.url)
        except AddressRefused as refused:
            raise CallRefused(f"The URL of the MCP server {self.name} {refused.reason}.") from None
        transport = GuardedTransport(self.url, self.headers, once=once)
        # The transport has the timeouts.
        return httpx2.AsyncClient(
            transport=transport, headers=headers, auth=auth, timeout=None, **more
        )


def find_server(name: str, *, tenant: str = "") -> McpServer:
    """Return the server of that name for a tenant. Raises AgentError if none is declared for it."""
    declared = _read(str(conf.MCP_SERVERS))
    own = declared.get("tenants", {}).get(tenant, {}) if tenant else {}
    about = own.get(name, declared.get("servers", {}).get(name))
    if about is None:
        raise AgentError(f"There is no MCP server {name} here.")
    headers = {
        key: Template(text).substitute(os.environ) for key, text in about.get("headers", {}).items()
    }
    return McpServer(name, about["url"], headers)


def find_flaws() -> list[str]:
    """Return what is wrong with the file."""
    try:
        declared = _read(str(conf.MCP_SERVERS))
    except (OSError, ValueError) as fault:
        return [str(fault)]
    flaws = []
    places = {"": declared.get("servers", {}), **declared.get("tenants", {})}
    for tenant, servers in places.items():
        for name in servers:
            try:
                guard().check(find_server(name, tenant=tenant).url)
            except KeyError as missing:
                flaws.append(f"{name} needs {missing}")
            except (AddressRefused, ValueError, AttributeError) as fault:
                flaws.append(f"{name}: {getattr(fault, 'reason', fault)}")
    return flaws


@of_settings
@functools.lru_cache(maxsize=2)
def _read(path: str) -> Mapping[str, Any]:
    return tomllib.loads(Path(path).read_text("utf-8")) if path else {}


class McpTools:
    """The tools of a server in one turn: `await turn.mcp("github").call_tool("create_issue", {"title": "..."})`.

    Each call connects anew, so that nothing is open while the agent waits.
    """

    def __init__(
        self, server: McpServer, journal: Journal, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.server, self._journal, self._loop = server, journal, loop
        self._numbers, self._lock = count(1), asyncio.Lock()
        self._read_only: Sequence[str] | None = None

    def list_tools(self) -> Later[list[Tool]]:
        """Return the tools of the server."""
        return Later(functools.partial(self._connect, _list_tools), self._loop)

    def call_tool(
        self, tool: str, arguments: Mapping[str, Any] | None = None, *, name: str = ""
    ) -> Later[CallToolResult]:
        """Call a tool, and return its result, also if that is an error. Synchronous agents write `.now()`.

        A call is a durable step, unless the server says that the tool only reads. `name`: that of the step; without one
        the calls of the turn are numbered. Raises CallRefused for a server that may not be called, and MCPError.
        """
        step = name or f"mcp {self.server.name} {tool} {next(self._numbers)}"
        return Later(functools.partial(self._call, step, tool, dict(arguments or {})), self._loop)

    async def _call(self, step: str, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        from mcp_types import CallToolResult  # noqa: PLC0415 - see above

        async def work() -> Any:
            result = await self._connect(lambda client: client.call_tool(tool, arguments))
            return result.model_dump(mode="json", by_alias=True, exclude_none=True)

        if tool in await self._list_read_only():
            return CallToolResult.model_validate(await work())
        return CallToolResult.model_validate(
            await DurableStep(self._journal, self._loop, step, work)
        )

    async def _list_read_only(self) -> Sequence[str]:
        """Return the tools that only read: a step as well, so that each attempt takes the same steps."""

        async def work() -> list[str]:
            tools = await self._connect(_list_tools)
            return [
                tool.name for tool in tools if tool.annotations and tool.annotations.read_only_hint
            ]

        async with self._lock:
            if self._read_only is None:
                name = f"mcp {self.server.name}"
                self._read_only = await DurableStep(self._journal, self._loop, name, work)
            return self._read_only or ()

    async def _connect(self, act: Callable[[Client], Awaitable[T]]) -> T:
        """Connect, and do something. Raises what it raises, and not a group of it."""
        from mcp import Client  # noqa: PLC0415 - see above
        from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415

        url = self.server.url
        try:
            async with (
                self.server.make_client(once=True) as http,
                # The transport bounds all answers together.
                Client(
                    streamable_http_client(url, http_client=http, max_sse_event_size=None)
                ) as client,
            ):
                return await act(client)
        except BaseExceptionGroup as group:
            raise _find_first(group) from None


async def _list_tools(client: Client) -> list[Tool]:
    """Return all tools. Raises AgentError for a list without end."""
    tools: list[Tool] = []
    cursor = None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        if len(tools) > MAX_TOOLS:
            raise AgentError(f"The MCP server lists more than {MAX_TOOLS} tools.")
        if not (cursor := page.next_cursor):
            return tools
    raise AgentError(f"The MCP server lists its tools on more than {MAX_PAGES} pages.")


def _find_first(group: BaseException) -> BaseException:
    return _find_first(group.exceptions[0]) if isinstance(group, BaseExceptionGroup) else group
