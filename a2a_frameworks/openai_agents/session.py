"""The conversation of a turn as a session of the OpenAI Agents SDK, and the message of the client as its input."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from agents.memory import SessionABC

from a2a_frameworks.shared.message_store import (
    FileContent,
    MessageStore,
    note_file,
    read_parts,
    shorten,
)
from a2a_tasks.agents import Turn

__all__ = ["ConversationSession", "make_input"]


class ConversationSession(MessageStore, SessionABC):
    """The items of a conversation as a session. New ones are written with the end of the turn."""

    def __init__(self, turn: Turn, key: str) -> None:
        super().__init__(turn, key)
        self.session_id = turn.context_id
        self._own = list(self._own)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the items so far, oldest first; with a limit, the last so many."""
        items = await self.read()
        return items if limit is None else items[max(0, len(items) - limit) :]

    async def add_items(self, items: Sequence[Any]) -> None:
        """Add items."""
        self._own += items

    async def pop_item(self) -> Any:
        """Take the last item off; None if there is none."""
        return self._own.pop() if self._own else await self._turn.conversation.pop(self._key)

    async def clear_session(self) -> None:
        """Remove all items."""
        self._own.clear()
        await self._turn.conversation.clear(self._key)

    async def keep(self) -> None:
        """Append the items of the task to the conversation. Raises AgentError if it is full."""
        self._own = shorten(self._own, _replace_file)
        await self.append(())


def _replace_file(value: Any) -> Any:
    match value:
        case {"type": "input_image", "image_url": str(url)} | {
            "type": "input_file",
            "file_data": str(url),
        }:
            kind, _, content = url.removeprefix("data:").partition(";base64,")
            return {"type": "input_text", "text": note_file(kind, content)}
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
