"""Agents of the host as tools of pydantic-ai."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic_ai import FunctionToolset, RunContext, Tool, ToolFailed
from pydantic_ai.durable_exec import DurableOperationId, ToolsetCallToolId
from pydantic_ai.tools import ToolDefinition

from a2a_frameworks.shared.agent_tools import AgentTool, ToolError, make_tools

__all__ = ["calls_agent", "tools_for"]

#: The beginning of the ids of toolsets.
PREFIX = "agents:"


def tools_for(*slugs: str) -> FunctionToolset[Any]:
    """Return agents of the host as a toolset: `Agent(..., toolsets=[tools_for("billing", "search")])`."""
    made = [_make_tool(tool) for tool in make_tools(slugs)]
    return FunctionToolset(made, id=PREFIX + ",".join(slugs))


def _make_tool(tool: AgentTool) -> Tool[Any]:
    async def call(ctx: RunContext[Any], message: str) -> str:
        try:
            return await tool.call(message, ctx.tool_call_id or "")
        except ToolError as fault:
            raise ToolFailed(str(fault)) from fault

    async def prepare(_: RunContext[Any], definition: ToolDefinition) -> ToolDefinition:
        return replace(definition, description=tool.description)

    return Tool(call, name=tool.name, prepare=prepare)


def calls_agent(operation_id: DurableOperationId) -> bool:
    """Return whether an operation is a call of such a tool."""
    return isinstance(operation_id, ToolsetCallToolId) and operation_id.toolset_id.startswith(
        PREFIX
    )
