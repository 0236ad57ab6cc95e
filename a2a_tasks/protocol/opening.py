"""The beginning of what a message says: what people call a task by in lists, and look for."""

from __future__ import annotations

from a2a_tasks.protocol.values import Message

__all__ = ["LONGEST", "opening_of"]

#: Characters kept.
LONGEST = 200
#: Characters looked at: most of a text that begins with more than that of blank space is none.
_LOOKED_AT = 4 * LONGEST


def opening_of(message: Message) -> str:
    """The beginning of a message's text on one line, as any database holds it; empty if it has no text."""
    found, length = [], 0
    for part in message.parts:
        if isinstance(part.text, str) and length < _LOOKED_AT:
            found.append(part.text[: _LOOKED_AT - length])
            length += len(found[-1])
    line = " ".join(" ".join(found).replace("\x00", " ").split())
    return line[:LONGEST].encode(errors="replace").decode()
