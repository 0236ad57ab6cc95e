"""A call of another agent, as an agent wants it and the host accepts it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from a2a_tasks.protocol.values import Part

__all__ = ["ANSWER", "WantedCall"]

#: The end of the name of the step that keeps the answer of a call.
ANSWER = ": answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedCall:
    """A call as the agent wants it; it can be pickled."""

    agent: str
    #: The name of its step.
    name: str
    parts: tuple[Part, ...]
    #: The task and the conversation that it continues; empty = it begins new ones.
    task_id: str = ""
    context_id: str = ""
    #: The name of a conversation that lasts; empty = a new one.
    context: str = ""
    seconds: float
    questions: str = "relay"
    at_end: str = "cancel"
    metadata: Mapping[str, Any] | None = None
