"""Agents of Microsoft's Agent Framework."""

from a2a_frameworks.agent_framework.agent import AgentFrameworkAgent
from a2a_frameworks.shared.lazy_tools import load_tools

__all__ = ["AgentFrameworkAgent", "tools_for"]

tools_for = load_tools(__name__)
