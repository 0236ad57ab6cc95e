"""Crews of CrewAI."""

from a2a_frameworks.crewai.agent import CrewAgent
from a2a_frameworks.shared.lazy_tools import load_tools

__all__ = ["CrewAgent", "tools_for"]

tools_for = load_tools(__name__)
