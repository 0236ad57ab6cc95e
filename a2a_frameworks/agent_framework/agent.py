"""Agents of Microsoft's Agent Framework, unchanged: streaming, approvals, memory, and no call of a model made twice.

docs/frameworks/agent-framework.md is the guide.
"""

from __future__ import annotations

from typing import Any, ClassVar

from a2a_frameworks.shared.model_agent import ModelAgent

__all__ = ["AgentFrameworkAgent"]


class AgentFrameworkAgent(ModelAgent, abstract=True):
    """An agent that an `agent_framework.Agent` works for."""

    framework = "agent_framework"
    call_class = "a2a_frameworks.agent_framework.call:AgentFrameworkCall"
    source_title = "an Agent of the Agent Framework"
    attribute = "agent"
    #: The agent; one for all turns.
    agent: ClassVar[Any] = None
