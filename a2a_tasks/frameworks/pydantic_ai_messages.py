"""The messages of pydantic-ai in the conversation of a turn, and the message of the client as a prompt."""

from __future__ import annotations

import mimetypes
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

from a2a_tasks.agents import AgentError, Part, Turn
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.values import UNSET

__all__ = ["TypedMessageStore", "make_prompt"]

#: The key of the list in the conversation, and of the waiting messages in the memory of the task.
KEY = "pydantic_ai"
#: Most bytes of a message with files; a larger one is kept without them.
MAX_BYTES_WITH_FILES = 512 * 1024
_requests = TypeAdapter(DeferredToolRequests)


class TypedMessageStore:
    """The messages of a conversation.

    Those of a task that waits for an answer stay with the task until it has one. Other tasks of the conversation could
    not go on from a call without a result.
    """

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        waiting = turn.memory.get(KEY)
        #: The messages of earlier turns of this task, which are not in the conversation yet.
        self._waiting: list[Any] = waiting["messages"] if waiting else []
        #: The calls that the client was asked about.
        self.requests: DeferredToolRequests | None = (
            _requests.validate_python(waiting["requests"]) if waiting else None
        )

    async def read(self) -> list[ModelMessage]:
        """Return the messages so far, oldest first."""
        items = await self._turn.conversation.items(KEY)
        found: list[ModelMessage] = ModelMessagesTypeAdapter.validate_python(
            [*items, *self._waiting]
        )
        return found

    def wait(self, new: Sequence[ModelMessage], requests: DeferredToolRequests) -> None:
        """Keep new messages with the task, which waits for the results of these calls."""
        self._turn.memory[KEY] = {
            "messages": [*self._waiting, *_dump(new)],
            "requests": _requests.dump_python(requests, mode="json"),
        }

    async def append(self, new: Sequence[ModelMessage]) -> None:
        """Append the messages of the task to the conversation. Raises AgentError if it is full."""
        try:
            await self._turn.conversation.append(KEY, *self._waiting, *_dump(new))
        except ValueError as fault:
            raise AgentError(
                "This conversation has become too long. Please begin a new one."
            ) from fault
        self._turn.memory.pop(KEY, None)


def _dump(messages: Sequence[ModelMessage]) -> list[Any]:
    dumped: list[Any] = ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")
    return [m if len(write(m)) <= MAX_BYTES_WITH_FILES else _drop_files(m) for m in dumped]


def _drop_files(value: Any) -> Any:
    """Return a message with a note in the place of each file."""
    match value:
        case {"part_kind": "file", "content": content}:
            return {"part_kind": "text", "content": _drop_files(content)}
        case {"kind": "binary", "media_type": media_type, "data": str(content)}:
            return f"[A file of type {media_type} with {len(content) * 3 // 4} bytes was here.]"
        case dict():
            return {key: _drop_files(member) for key, member in value.items()}
        case list():
            return [_drop_files(member) for member in value]
    return value


async def make_prompt(turn: Turn) -> str | list[UserContent]:
    """Return the message of a turn as a prompt; files by their bytes, which are fetched. Raises FileUnavailable."""
    prompt = [await _convert(turn, part) for part in turn.parts]
    texts = [content for content in prompt if isinstance(content, str)]
    return "\n".join(texts) if len(texts) == len(prompt) else prompt


async def _convert(turn: Turn, part: Part) -> UserContent:
    if isinstance(part.text, str):
        return part.text
    if part.data is not UNSET:
        return write(part.data).decode()
    guessed = mimetypes.guess_type(part.filename or "")[0]
    media_type = part.media_type or guessed or "application/octet-stream"
    return BinaryContent(await turn.fetch(part), media_type=media_type, identifier=part.filename)
