"""The values that an agent may yield; `Turn` makes them, the runner records them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from a2a_tasks.agents.content import Content, parts
from a2a_tasks.protocol.values import Part, TaskState

__all__ = ["ANSWER", "Chunk", "Emission", "Reply", "StatusUpdate", "ToolEvent", "emission"]

#: Id of the artifact for plain yielded text (`answer-7` in the turn of event 7).
ANSWER = "answer"


@dataclass(frozen=True, slots=True)
class StatusUpdate:
    """The task's state, with or without a message."""

    state: TaskState
    parts: tuple[Part, ...] = ()
    metadata: Mapping[str, Any] | None = None
    #: Names of secrets that a person is asked to hand over; the host adds the link.
    hand_over: tuple[str, ...] = ()
    #: URIs of the extensions that the message follows.
    extensions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """An artifact or a piece of one. Without `append` it begins (or replaces) the artifact; `last` closes it."""

    artifact_id: str
    parts: tuple[Part, ...]
    append: bool = False
    last: bool = False
    name: str | None = None
    description: str | None = None
    metadata: Mapping[str, Any] | None = None
    extensions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """A direct Message: an answer without a task."""

    parts: tuple[Part, ...]
    metadata: Mapping[str, Any] | None = None
    extensions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolEvent:
    """A call of a tool, or its result, for clients that activate the extension."""

    #: "toolCall" or "toolResult".
    kind: str
    #: The id of the call, unique in the task.
    id: Any
    #: The other members: name and arguments of a call, content and error of a result.
    about: Mapping[str, Any]

    @property
    def parts(self) -> tuple[Part, ...]:
        """Its content, as clients see it if nothing is redacted or cut."""
        return (Part(data={self.kind: {"id": self.id, **self.about}}),)


Emission = StatusUpdate | Chunk | Reply | ToolEvent


def emission(value: Emission | Content, *, answer: str = ANSWER, begun: bool) -> Emission:
    """Return the emission for a yielded value: text and parts are pieces of the artifact `answer`.

    `begun`: that artifact has a first piece already. Raises TypeError for any other value.
    """
    if isinstance(value, Emission):
        return value
    return Chunk(artifact_id=answer, parts=parts((value,)), append=begun)
