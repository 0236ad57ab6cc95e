"""The values that an agent may yield, and the parts in them; `Turn` makes them, the runner records them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from operator import is_
from types import NoneType
from typing import Any, TypeVar

import msgspec

from a2a_tasks.protocol.soundness import mend, mend_text
from a2a_tasks.protocol.values import UNSET, Part, TaskState, UnsetType

__all__ = [
    "ANSWER",
    "Chunk",
    "Content",
    "Emission",
    "PairJoiner",
    "Reply",
    "StatusUpdate",
    "ToolEvent",
    "data",
    "emission",
    "file",
    "link",
    "mend_emission",
    "parts",
    "text",
]

NUL, UNKNOWN = "\x00", "\ufffd"
#: Types of values that need no mending.
SOUND = {NoneType, UnsetType, bool, TaskState}

#: Id of the artifact for plain yielded text (`answer-7` in the turn of event 7).
ANSWER = "answer"
#: Content from an agent: a str is text.
Content = str | Part


def text(value: str, *, media_type: str | None = None) -> Part:
    """Return a text part."""
    return Part(text=value, media_type=media_type)


def data(value: Any) -> Part:
    """Return a data part with any JSON value."""
    return Part(data=value)


def file(content: bytes, filename: str, media_type: str) -> Part:
    """Return a part with a file by value."""
    return Part(raw=base64.b64encode(content).decode(), filename=filename, media_type=media_type)


def link(url: str, *, filename: str | None = None, media_type: str | None = None) -> Part:
    """Return a part with a file by reference."""
    return Part(url=url, filename=filename, media_type=media_type)


def parts(content: tuple[Content, ...]) -> tuple[Part, ...]:
    """Convert content to parts. Raises TypeError for a value that is neither text nor a part."""
    for item in content:
        if not isinstance(item, str | Part):
            raise TypeError(f"{type(item).__name__} cannot be content: give a str or a Part")
    return tuple(Part(text=item) if isinstance(item, str) else item for item in content)


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
    #: The position among the calls of this turn with that id, from 1: models repeat ids. 0 = the id is unique in the task.
    number: int = 0

    @property
    def parts(self) -> tuple[Part, ...]:
        """Its content, as clients see it if nothing is redacted or cut."""
        return (Part(data={self.kind: {"id": self.id, **self.about}}),)


Emission = StatusUpdate | Chunk | Reply | ToolEvent
Said = TypeVar("Said", bound=Emission)


def emission(value: Emission | Content, *, answer: str = ANSWER, begun: bool) -> Emission:
    """Return the emission for a yielded value: text and parts are pieces of the artifact `answer`.

    `begun`: that artifact has a first piece already. Raises TypeError for any other value.
    """
    if isinstance(value, Emission):
        return value
    return Chunk(artifact_id=answer, parts=parts((value,)), append=begun)


def mend_emission(said: Said) -> Said:
    """Return an emission whose values other readers of JSON take (`mend`). A sound one is returned as it is.

    NUL in the id of an artifact or of a call becomes U+FFFD: databases have no such keys.
    """
    changed: dict[str, Any] = {}
    for member in fields(said):
        value = getattr(said, member.name)
        if type(value) in SOUND or (isinstance(value, tuple) and not value):
            continue
        mended = _mend_parts(value) if member.name == "parts" else mend(value)
        if member.name in {"artifact_id", "id"} and isinstance(mended, str) and NUL in mended:
            mended = mended.replace(NUL, UNKNOWN)
        if mended is not value:
            changed[member.name] = tuple(mended) if isinstance(value, tuple) else mended
    return replace(said, **changed) if changed else said


def _mend_parts(said: tuple[Part, ...]) -> tuple[Part, ...]:
    mended = tuple(map(_mend_part, said))
    return said if all(map(is_, said, mended)) else mended


def _mend_part(part: Part) -> Part:
    changed: dict[str, Any] = {}
    for name in part.__struct_fields__:
        value = getattr(part, name)
        if type(value) in SOUND:
            continue
        mended = mend_text(value) if isinstance(value, str) else mend(value)
        if mended is not value:
            changed[name] = mended
    return msgspec.structs.replace(part, **changed) if changed else part


class PairJoiner:
    """Joins a surrogate pair that comes in two pieces of one artifact: the first half waits for the next piece."""

    def __init__(self) -> None:
        #: The halves that wait, by the ids of their artifacts.
        self._held: dict[str, str] = {}

    def join(self, chunk: Chunk) -> Chunk:
        """Return a piece with the half of the piece before, and without the half at its end."""
        held = self._held.pop(chunk.artifact_id, "") if self._held else ""
        if held and chunk.append:
            chunk = replace(chunk, parts=_prepend(held, chunk.parts))
        text = chunk.parts[-1].text if chunk.parts else UNSET
        if chunk.last or not isinstance(text, str) or not "\ud800" <= text[-1:] <= "\udbff":
            return chunk
        self._held[chunk.artifact_id] = text[-1]
        shorter = msgspec.structs.replace(chunk.parts[-1], text=text[:-1])
        return replace(chunk, parts=(*chunk.parts[:-1], shorter))

    def release(self) -> list[Chunk]:
        """Return the halves whose other half did not come, as U+FFFD at the end of their artifacts."""
        held, self._held = self._held, {}
        parts = (Part(text=UNKNOWN),)
        return [Chunk(artifact_id=id_, parts=parts, append=True) for id_ in held]


def _prepend(half: str, said: tuple[Part, ...]) -> tuple[Part, ...]:
    first, *others = said
    if isinstance(first.text, str):
        joined = mend_text(half + first.text[:1]) + first.text[1:]
        return (msgspec.structs.replace(first, text=joined), *others)
    return (Part(text=UNKNOWN), *said)
