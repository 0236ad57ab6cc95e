"""Agents of pydantic-ai."""

from a2a_frameworks.pydantic_ai.agent import PydanticAIAgent
from a2a_frameworks.shared.lazy_tools import load_tools

__all__ = ["PydanticAIAgent", "tools_for"]

tools_for = load_tools(__name__)
