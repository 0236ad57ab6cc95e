"""Agents of the OpenAI Agents SDK."""

from a2a_frameworks.openai_agents.agent import OpenAIAgentsAgent
from a2a_frameworks.shared.lazy_tools import load_tools

__all__ = ["OpenAIAgentsAgent", "tools_for"]

tools_for = load_tools(__name__)
