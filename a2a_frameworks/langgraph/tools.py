"""Agents of the host as tools of LangGraph."""

from __future__ import annotations

from typing import Annotated, Any

from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, ToolException

from a2a_frameworks.shared.agent_tools import AgentTool, ToolError, make_tools

__all__ = ["tools_for"]


def tools_for(*slugs: str) -> list[BaseTool]:
    """Return agents of the host as tools: `ToolNode(tools_for("billing", "search"))`."""
    return [_make_tool(tool) for tool in make_tools(slugs)]


def _make_tool(tool: AgentTool) -> BaseTool:
    async def call(message: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> str:
        try:
            return await tool.call(message, tool_call_id)
        except ToolError as fault:
            raise ToolException(str(fault)) from fault

    about: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description,
        "handle_tool_error": True,
    }
    return StructuredTool.from_function(coroutine=call, **about)
