"""The messages of a framework in the conversation of a turn, and the message of the client."""

from __future__ import annotations

import mimetypes
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from a2a_tasks.agents import AgentError, Turn
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.values import UNSET

__all__ = ["FileContent", "MessageStore", "note_file", "read_parts", "replace_files", "shorten"]

#: Most bytes of a message with files; a larger one is kept without them.
MAX_BYTES_WITH_FILES = 512 * 1024


class FileContent(NamedTuple):
    """A file in a message."""

    content: bytes
    media_type: str
    filename: str | None

    @property
    def name(self) -> str:
        """Return the name of the file, or one that says its type."""
        return self.filename or f"file{mimetypes.guess_extension(self.media_type) or ''}"


class MessageStore:
    """The messages of a conversation, as JSON.

    Those of a task that waits for an answer stay with the task until it has one. Other tasks of the conversation could
    not go on from a call without a result.
    """

    def __init__(self, turn: Turn, key: str) -> None:
        self._turn, self._key = turn, key
        #: The memory of the task, if it waits; None = it asked nothing.
        self.waiting: dict[str, Any] | None = turn.memory.get(key)
        self._own: list[Any] = self.waiting["messages"] if self.waiting else []

    async def read(self) -> list[Any]:
        """Return the messages so far, oldest first."""
        return [*await self._turn.conversation.items(self._key), *self._own]

    def wait(self, new: Sequence[Any], **about: Any) -> None:
        """Keep new messages, and what the question is about, with the task, which waits."""
        self._turn.memory[self._key] = {"messages": [*self._own, *new], **about}

    async def append(self, new: Sequence[Any]) -> None:
        """Append the messages of the task, which waits no more, to the conversation. Raises AgentError if it is full."""
        try:
            await self._turn.conversation.append(self._key, *self._own, *new)
        except ValueError as fault:
            raise AgentError(
                "This conversation has become too long. Please begin a new one."
            ) from fault
        self._turn.memory.pop(self._key, None)


def shorten(messages: Sequence[Any], replace: Callable[[Any], Any]) -> list[Any]:
    """Return messages, large ones without their files (`replace_files`)."""
    return [
        one if len(write(one)) <= MAX_BYTES_WITH_FILES else replace_files(one, replace)
        for one in messages
    ]


def replace_files(value: Any, replace: Callable[[Any], Any]) -> Any:
    """Return a value with a note in the place of each file; `replace` returns it, or a value that is no file as it is."""
    if (note := replace(value)) is not value:
        return note
    if isinstance(value, dict):
        return {key: replace_files(member, replace) for key, member in value.items()}
    if isinstance(value, list):
        return [replace_files(member, replace) for member in value]
    return value


def note_file(media_type: object, content: str) -> str:
    """Return the note about a file, whose content is in base64."""
    size = len(content) * 3 // 4 - content[-2:].count("=")
    return f"[A file of type {media_type} with {size} bytes was here.]"


async def read_parts(turn: Turn) -> list[str | FileContent]:
    """Return the parts of a message: texts, data as JSON, and files, which are fetched. Raises FileUnavailable."""
    found: list[str | FileContent] = []
    for part in turn.parts:
        if isinstance(part.text, str):
            found.append(part.text)
        elif part.data is not UNSET:
            found.append(write(part.data).decode())
        else:
            guessed = mimetypes.guess_type(part.filename or "")[0]
            media_type = part.media_type or guessed or "application/octet-stream"
            found.append(FileContent(await turn.fetch(part), media_type, part.filename))
    return found
