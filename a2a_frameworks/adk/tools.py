"""Agents of the host as tools of the Agent Development Kit."""

from __future__ import annotations

from typing import Any

from google.adk.tools import FunctionTool

from a2a_frameworks.shared.agent_tools import AgentTool, ToolError, make_tools, mark

__all__ = ["tools_for"]


def tools_for(*slugs: str) -> list[FunctionTool]:
    """Return agents of the host as tools: `LlmAgent(..., tools=tools_for("billing", "search"))`."""
    return [_make_tool(tool) for tool in make_tools(slugs)]


def _make_tool(tool: AgentTool) -> FunctionTool:
    async def call(message: str) -> dict[str, Any]:
        try:
            return {"result": await tool.call(message)}
        except ToolError as fault:
            return {"error": str(fault)}

    call.__name__, call.__doc__ = tool.name, tool.description
    made = FunctionTool(call)
    mark(made, tool)
    return made
