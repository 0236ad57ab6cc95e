"""Agents as the tools of an MCP server."""

from __future__ import annotations

import functools
from typing import Any

from mcp_types import ListToolsResult, PaginatedRequestParams, Tool, ToolAnnotations

from a2a_doors.mcp.request import REQUEST
from a2a_tasks.agents import Agent

__all__ = ["SCHEMA", "list_tools"]

#: The input of every tool. Models send null for what they leave out, and some clients refuse it unless it is allowed.
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "message": {
            "type": "string",
            "description": "What the agent is to do, or the answer to its question.",
        },
        "data": {
            "type": ["object", "null"],
            "description": "Structured input, such as the fields of a form that the agent asked for.",
        },
        "context": {
            "type": ["string", "null"],
            "description": "The id of a conversation, from an earlier answer: the agent goes on with it.",
        },
        "task": {
            "type": ["string", "null"],
            "description": "The id of a task, from an earlier answer: to answer its question, or to wait for its end.",
        },
    },
    "required": ["message"],
}
#: Seconds for which clients may keep the list.
KEPT_MS = 60_000
#: Some clients allow 1,024 characters, and add about a hundred.
MAX_DESCRIPTION = 900


async def list_tools(ctx: Any, _: PaginatedRequestParams | None) -> ListToolsResult:
    """Return the tools of the request's caller, which no cache may give to another one."""
    tools = [_describe(agent) for agent in ctx.request.scope[REQUEST].agents]
    return ListToolsResult(tools=tools, ttl_ms=KEPT_MS, cache_scope="private")


@functools.lru_cache(maxsize=1024)
def _describe(agent: Agent) -> Tool:
    skills = "; ".join(": ".join([skill.name, *skill.examples[:2]]) for skill in agent.skills)
    about = f"{agent.description}\nSkills: {skills}" if skills else agent.description
    return Tool(
        name=agent.slug,
        title=agent.name,
        description=about[:MAX_DESCRIPTION],
        input_schema=SCHEMA,
        annotations=ToolAnnotations(open_world_hint=True),
    )
