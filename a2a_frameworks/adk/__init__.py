"""Agents of Google's Agent Development Kit."""

from a2a_frameworks.adk.agent import AdkAgent
from a2a_frameworks.shared.lazy_tools import load_tools

__all__ = ["AdkAgent", "tools_for"]

tools_for = load_tools(__name__)
