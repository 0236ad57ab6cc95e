"""Agents of the host as tools of the Agent Framework."""

from __future__ import annotations

from typing import Any

from agent_framework import FunctionTool
from agent_framework import tool as framework_tool

from a2a_frameworks.shared.agent_tools import AgentTool, make_tools, mark

__all__ = ["tools_for"]


def tools_for(*slugs: str) -> list[FunctionTool]:
    """Return agents of the host as tools: `Agent(..., tools=tools_for("billing", "search"))`."""
    return [_make_tool(tool) for tool in make_tools(slugs)]


def _make_tool(tool: AgentTool) -> FunctionTool:
    async def call(message: str) -> str:
        return await tool.call(message)

    about: dict[str, Any] = {"name": tool.name, "description": tool.description}
    made: FunctionTool = framework_tool(call, approval_mode="never_require", **about)
    mark(made, tool)
    return made
