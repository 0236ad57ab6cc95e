"""Messages of clients for LangGraph, and messages of models for clients."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, convert_to_messages
from langgraph.types import Command
from pydantic_core import to_jsonable_python

from a2a_frameworks.shared.message_store import FileContent, note_file, read_parts, replace_files
from a2a_tasks.agents import Part, Turn, data, text
from a2a_tasks.agents.emission import Chunk, Emission, StatusUpdate
from a2a_tasks.protocol.soundness import mend

__all__ = [
    "drop_files",
    "find_messages",
    "make_emission",
    "make_json",
    "make_message",
    "make_part",
    "mend_messages",
]

#: Kinds of content blocks, by the first half of the media type; other files are of the kind `file`.
KINDS = {"image", "audio", "video"}


async def make_message(turn: Turn) -> HumanMessage:
    """Return the message of a turn; files by their bytes, which are fetched. Raises FileUnavailable."""
    blocks: list[Any] = [_convert(part) for part in await read_parts(turn)]
    if all(block["type"] == "text" for block in blocks):
        return HumanMessage("\n".join(block["text"] for block in blocks))
    return HumanMessage(content=blocks)


def _convert(part: str | FileContent) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    kind = part.media_type.partition("/")[0]
    block = {
        "type": kind if kind in KINDS else "file",
        "base64": base64.b64encode(part.content).decode(),
        "mime_type": part.media_type,
    }
    return {**block, "extras": {"filename": part.filename}} if part.filename else block


def drop_files(value: Any) -> Any:
    """Return messages, alone or in the input of a graph, with a note in the place of each file."""
    return replace_files(value, _replace_file)


def _replace_file(value: Any) -> Any:
    match value:
        case BaseMessage(content=list()):
            return value.model_copy(update={"content": drop_files(value.content)})
        case {"type": str(), "base64": str(content)}:
            return {"type": "text", "text": note_file(value.get("mime_type"), content)}
    return value


def find_messages(value: Any) -> Iterator[BaseMessage]:
    """Yield the messages in the input or the output of a node."""
    match value:
        case BaseMessage():
            yield value
        case Command():
            yield from find_messages(value.update)
        case Mapping():
            for key, member in value.items():
                yield from find_messages(_read_messages(member) if key == "messages" else member)
        case list() | tuple():
            for member in value:
                yield from find_messages(member)
        case _ if hasattr(value, "__dict__") and not isinstance(value, type):  # a state with fields
            for member in vars(value).values():
                if isinstance(member, BaseMessage | list):
                    yield from find_messages(member)


def mend_messages(value: Any) -> None:
    """Mend the texts of messages in place: clients of models refuse to send half a surrogate pair (`mend`)."""
    for message in find_messages(value):
        message.content = mend(message.content)


def _read_messages(given: Any) -> Any:
    """Return the messages of a node, read as LangGraph reads them: they may be dicts, or pairs of role and text."""
    try:
        return convert_to_messages(given if isinstance(given, list) else [given])
    except (NotImplementedError, ValueError):  # it holds no messages
        return given


def make_json(value: Any) -> Any:
    """Return a value as JSON; a member that has no JSON becomes its text."""
    return to_jsonable_python(value, fallback=str)


def make_part(value: Any) -> Part:
    """Return a value as content: texts and messages as text, others as data."""
    if isinstance(value, BaseMessage):
        return text(str(value.text))
    return text(value) if isinstance(value, str) else data(make_json(value))


def make_emission(turn: Turn, value: Any) -> Emission:
    """Return a value of the stream writer: pieces of artifacts and statuses as they are, others as progress."""
    if isinstance(value, Chunk | StatusUpdate):
        return value
    return turn.working(value if isinstance(value, Part) else make_part(value))
