"""Agents of Strands."""

from a2a_frameworks.shared.lazy_tools import load_tools
from a2a_frameworks.strands.agent import StrandsAgent

__all__ = ["StrandsAgent", "tools_for"]

tools_for = load_tools(__name__)
