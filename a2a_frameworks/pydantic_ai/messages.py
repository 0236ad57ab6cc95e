"""The messages of pydantic-ai in the conversation of a turn, and the message of the client as a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_ai import BinaryContent, ModelMessage, ModelMessagesTypeAdapter, UserContent

from a2a_frameworks.shared.message_store import FileContent, note_file, read_parts, shorten
from a2a_tasks.agents import Turn

__all__ = ["dump_messages", "make_prompt"]


def dump_messages(messages: Sequence[ModelMessage]) -> list[Any]:
    """Return messages as JSON, large ones without their files."""
    dumped: list[Any] = ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")
    return shorten(dumped, _replace_file)


def _replace_file(value: Any) -> Any:
    match value:
        case {"part_kind": "file", "content": content}:
            return {"part_kind": "text", "content": _replace_file(content)}
        case {"kind": "binary", "media_type": media_type, "data": str(content)}:
            return note_file(media_type, content)
    return value


async def make_prompt(turn: Turn) -> str | list[UserContent]:
    """Return the message of a turn as a prompt; files by their bytes, which are fetched. Raises FileUnavailable."""
    prompt = [_convert(part) for part in await read_parts(turn)]
    texts = [content for content in prompt if isinstance(content, str)]
    return "\n".join(texts) if len(texts) == len(prompt) else prompt


def _convert(part: str | FileContent) -> UserContent:
    if isinstance(part, str):
        return part
    return BinaryContent(part.content, media_type=part.media_type, identifier=part.filename)
