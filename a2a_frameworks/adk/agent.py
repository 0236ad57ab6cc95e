"""Agents of Google's Agent Development Kit, unchanged: streaming, confirmations, memory, and no call of a model made twice.

docs/frameworks/adk.md is the guide.
"""

from __future__ import annotations

from typing import Any, ClassVar

from a2a_frameworks.shared.model_agent import ModelAgent

__all__ = ["AdkAgent"]


class AdkAgent(ModelAgent, abstract=True):
    """An agent that a `google.adk.agents.BaseAgent` works for."""

    framework = "google.adk"
    call_class = "a2a_frameworks.adk.call:AdkCall"
    source_title = "an agent of the Agent Development Kit"
    attribute = "agent"
    #: The agent; one for all turns.
    agent: ClassVar[Any] = None
    #: Most requests to models in one turn.
    max_llm_calls: ClassVar[int] = 50
