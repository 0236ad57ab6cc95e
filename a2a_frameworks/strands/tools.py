"""Agents of the host as tools of Strands."""

from __future__ import annotations

from typing import Any

from strands import tool as strands_tool

from a2a_frameworks.shared.agent_tools import AgentTool, make_tools, mark

__all__ = ["tools_for"]


def tools_for(*slugs: str) -> list[Any]:
    """Return agents of the host as tools: `Agent(..., tools=tools_for("billing", "search"))`."""
    return [_make_tool(tool) for tool in make_tools(slugs)]


def _make_tool(tool: AgentTool) -> Any:
    async def call(message: str) -> str:
        return await tool.call(message)

    made = strands_tool(name=tool.name, description=tool.description)(call)
    mark(made, tool)
    return made
