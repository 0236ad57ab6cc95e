"""The messages of pydantic-ai in the conversation of a turn, and the message of the client as a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai import (
    BinaryContent,
    DeferredToolRequests,
    ModelMessage,
    ModelMessagesTypeAdapter,
    UserContent,
)

from a2a_frameworks.shared.message_store import (
    FileContent,
    MessageStore,
    note_file,
    read_parts,
    shorten,
)
from a2a_tasks.agents import Turn

__all__ = ["TypedMessageStore", "make_prompt"]

#: The key of the list in the conversation, and of the waiting messages in the memory of the task.
KEY = "pydantic_ai"
_requests = TypeAdapter(DeferredToolRequests)


class TypedMessageStore:
    """The messages of a conversation, and the calls that a task waits for."""

    def __init__(self, turn: Turn) -> None:
        self._store = MessageStore(turn, KEY)
        waiting = self._store.waiting
        #: The calls that the client was asked about.
        self.requests: DeferredToolRequests | None = (
            _requests.validate_python(waiting["requests"]) if waiting else None
        )

    async def read(self) -> list[ModelMessage]:
        """Return the messages so far, oldest first."""
        kept = await self._store.read()
        found: list[ModelMessage] = ModelMessagesTypeAdapter.validate_python(kept)
        return found

    def wait(self, new: Sequence[ModelMessage], requests: DeferredToolRequests) -> None:
        """Keep new messages with the task, which waits for the results of these calls."""
        self._store.wait(_dump(new), requests=_requests.dump_python(requests, mode="json"))

    async def append(self, new: Sequence[ModelMessage]) -> None:
        """Append the messages of the task to the conversation. Raises AgentError if it is full."""
        await self._store.append(_dump(new))


def _dump(messages: Sequence[ModelMessage]) -> list[Any]:
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
