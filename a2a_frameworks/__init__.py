"""Agents from frameworks: `host(anything, slug=..., skills=[...])` in the `agents.py` of an app. docs/frameworks.md.

No framework is imported here. Each adapter imports its own when a turn begins.
"""

from a2a_frameworks.hosting import host

__all__ = ["host"]
