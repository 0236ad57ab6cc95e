"""Crews of CrewAI, unchanged: streaming, human feedback, history, and no call of a model made twice.

docs/frameworks/crewai.md is the guide.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from a2a_frameworks.shared.model_agent import ModelAgent
from a2a_tasks.agents import Turn
from a2a_tasks.protocol.values import UNSET, Role

__all__ = ["CrewAgent"]


class CrewAgent(ModelAgent, abstract=True):
    """An agent that a `crewai.Crew` works for."""

    framework = "crewai"
    call_class = "a2a_frameworks.crewai.call:CrewCall"
    source_title = "a crew of CrewAI"
    attribute = "crew"
    #: The crew; a copy of it works for each turn.
    crew: ClassVar[Any] = None
    #: Most messages of the conversation in the input `history`.
    history_length: ClassVar[int] = 50

    async def make_input(self, turn: Turn) -> Mapping[str, Any]:
        """Return the inputs of the crew: `message`, `history` and the members of data. An override may be a function."""
        lines = [
            f"{'User' if message.role is Role.USER else 'You'}: {part.text}"
            for message in await turn.conversation.history(self.history_length)
            if message.message_id != turn.message.message_id
            for part in message.parts
            if part.text is not UNSET
        ]
        objects = [part.data for part in turn.parts if isinstance(part.data, Mapping)]
        given = {key: value for members in objects for key, value in members.items()}
        return {**given, "message": turn.text, "history": "\n".join(lines)}
