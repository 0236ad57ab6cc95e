"""What an agent may yield, as values; `Turn` makes them, the runner records them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from a2a_tasks.agents.content import Content, parts
from a2a_tasks.protocol.values import Part, TaskState

__all__ = ["ANSWER", "Chunk", "Emission", "Reply", "Status", "emission"]

#: Id of the artifact that plain yielded text goes into (`answer-7` in the turn of event 7).
ANSWER = "answer"


@dataclass(frozen=True, slots=True)
class Status:
    """The task's state, with or without a message."""

    state: TaskState
    parts: tuple[Part, ...] = ()
    metadata: Mapping[str, Any] | None = None
    #: Names of secrets that somebody is to hand over; the host adds where.
    hand_over: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """An artifact or a piece of one. Not `append` begins (or begins anew), `last` closes."""

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
    """A direct Message: the answer without a task."""

    parts: tuple[Part, ...]
    metadata: Mapping[str, Any] | None = None


Emission = Status | Chunk | Reply


def emission(value: Emission | Content, *, answer: str = ANSWER, begun: bool) -> Emission:
    """What a yielded value means: text and parts are pieces of the artifact `answer`, which has `begun` or not.

    Raises TypeError for anything else.
    """
    if isinstance(value, Status | Chunk | Reply):
        return value
    return Chunk(artifact_id=answer, parts=parts((value,)), append=begun)
