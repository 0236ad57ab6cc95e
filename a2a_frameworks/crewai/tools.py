"""Agents of the host as tools of CrewAI."""

from __future__ import annotations

from crewai.tools import BaseTool
from pydantic import PrivateAttr

from a2a_frameworks.shared.agent_tools import AgentTool, make_tools

__all__ = ["AgentCrewTool", "tools_for"]


def tools_for(*slugs: str) -> list[BaseTool]:
    """Return agents of the host as tools: `Agent(..., tools=tools_for("billing", "search"))`."""
    return [AgentCrewTool.make(tool) for tool in make_tools(slugs)]


class AgentCrewTool(BaseTool):
    """An agent as a tool; its copy for a turn makes the call."""

    _agent_tool: AgentTool = PrivateAttr()

    @classmethod
    def make(cls, tool: AgentTool) -> AgentCrewTool:
        """Return the tool for an agent."""
        made = cls(name=tool.name, description=tool.description)
        made._agent_tool = tool
        return made

    async def call(self, message: str) -> str:
        """Call the agent. Raises ToolError."""
        return await self._agent_tool.call(message)

    def _run(self, message: str) -> str:
        raise RuntimeError("an agent can be called in a turn of the host only")
