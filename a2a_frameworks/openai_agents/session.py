"""The conversation of a turn as a session of the OpenAI Agents SDK, and the message of the client as its input."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from agents.memory import SessionABC

from a2a_frameworks.shared.message_store import FileContent, append_items, read_parts
from a2a_tasks.agents import Turn
from a2a_tasks.protocol.jsontext import write

__all__ = ["ConversationSession", "make_input"]

#: The key of the list in the conversation, and of the waiting run in the memory of the task.
KEY = "openai_agents"
#: Most bytes of an item with files; a larger one is kept without them.
MAX_BYTES_WITH_FILES = 512 * 1024


class ConversationSession(SessionABC):
    """The items of a conversation. New ones are written with the end of the turn.

    Those of a task that waits for an answer stay with the task until it has one. Other tasks of the conversation could
    not go on from a call without a result.
    """

    def __init__(self, turn: Turn) -> None:
        self.session_id = turn.context_id
        self._turn = turn
        waiting = turn.memory.get(KEY)
        #: The items of the task, which are not in the conversation yet.
        self._new: list[Any] = list(waiting["items"]) if waiting else []
        #: The run that waits, and the calls that the client was asked about.
        self.state: dict[str, Any] | None = waiting["state"] if waiting else None
        self.calls: list[dict[str, Any]] = waiting["calls"] if waiting else []

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the items so far, oldest first; with a limit, the last so many."""
        items = [*await self._turn.conversation.items(KEY), *self._new]
        return items if limit is None else items[max(0, len(items) - limit) :]

    async def add_items(self, items: Sequence[Any]) -> None:
        """Add items."""
        self._new += items

    async def pop_item(self) -> Any:
        """Take the last item off; None if there is none."""
        return self._new.pop() if self._new else await self._turn.conversation.pop(KEY)

    async def clear_session(self) -> None:
        """Remove all items."""
        self._new.clear()
        await self._turn.conversation.clear(KEY)

    def wait(self, state: dict[str, Any], calls: Sequence[dict[str, Any]]) -> None:
        """Store the state of a run in the task, which waits for the approval of these calls."""
        self._turn.memory[KEY] = {
            "items": self._new,
            "state": state,
            "calls": list(calls),
        }

    async def keep(self) -> None:
        """Append the items of the task to the conversation. Raises AgentError if it is full."""
        kept = [i if len(write(i)) <= MAX_BYTES_WITH_FILES else _drop_files(i) for i in self._new]
        await append_items(self._turn, KEY, kept)


def _drop_files(value: Any) -> Any:
    """Return an item with a note in the place of each file."""
    match value:
        case {"type": "input_image", "image_url": str(url)} | {
            "type": "input_file",
            "file_data": str(url),
        }:
            kind, _, content = url.removeprefix("data:").partition(";base64,")
            size = len(content) * 3 // 4 - content[-2:].count("=")
            note = f"[A file of type {kind} with {size} bytes was here.]"
            return {"type": "input_text", "text": note}
        case dict():
            return {key: _drop_files(member) for key, member in value.items()}
        case list():
            return [_drop_files(member) for member in value]
    return value


async def make_input(turn: Turn) -> str | list[Any]:
    """Return the message of a turn as input; files by their bytes, which are fetched. Raises FileUnavailable."""
    contents = [_convert(part) for part in await read_parts(turn)]
    if all(content["type"] == "input_text" for content in contents):
        return "\n".join(content["text"] for content in contents)
    return [{"type": "message", "role": "user", "content": contents}]


def _convert(part: str | FileContent) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "input_text", "text": part}
    url = f"data:{part.media_type};base64,{base64.b64encode(part.content).decode()}"
    if part.media_type.startswith("image/"):
        return {"type": "input_image", "image_url": url, "detail": "auto"}
    return {"type": "input_file", "file_data": url, "filename": part.name}
