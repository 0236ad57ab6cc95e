"""Agents of the host as tools of the OpenAI Agents SDK."""

from __future__ import annotations

from typing import Any

from agents import FunctionTool, RunContextWrapper, function_tool
from agents.tool import default_tool_error_function
from agents.tool_context import ToolContext

from a2a_frameworks.shared.agent_tools import AgentTool, ToolError, make_tools, mark

__all__ = ["tools_for"]


def tools_for(*slugs: str) -> list[FunctionTool]:
    """Return agents of the host as tools: `Agent(..., tools=[*tools_for("billing", "search")])`."""
    return [_make_tool(tool) for tool in make_tools(slugs)]


def _make_tool(tool: AgentTool) -> FunctionTool:
    async def call(context: ToolContext[Any], message: str) -> str:
        return await tool.call(message, context.tool_call_id)

    made = function_tool(
        call,
        name_override=tool.name,
        description_override=tool.description,
        failure_error_function=_tell,
    )
    mark(made, tool)
    return made


def _tell(context: RunContextWrapper[Any], fault: Exception) -> str:
    if isinstance(fault, ToolError):
        return str(fault)
    return default_tool_error_function(context, fault)
