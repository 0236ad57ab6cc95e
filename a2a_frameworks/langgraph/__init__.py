"""Graphs of LangGraph."""

from a2a_frameworks.langgraph.agent import LangGraphAgent
from a2a_frameworks.shared.lazy_tools import load_tools

__all__ = ["LangGraphAgent", "tools_for"]

tools_for = load_tools(__name__)
