"""The title of a task: the beginning of its first message, for lists and searches."""

from __future__ import annotations

from a2a_tasks.protocol.values import Message

__all__ = ["MAX_LENGTH", "title_of"]

#: Maximum length of a title.
MAX_LENGTH = 200
#: Maximum number of characters examined: a longer run of blanks at the beginning gives an empty title.
_LOOKED_AT = 4 * MAX_LENGTH


def title_of(message: Message) -> str:
    """Return the beginning of a message's text on one line, storable in any database; empty if it has no text."""
    found, length = [], 0
    for part in message.parts:
        if isinstance(part.text, str) and length < _LOOKED_AT:
            found.append(part.text[: _LOOKED_AT - length])
            length += len(found[-1])
    line = " ".join(" ".join(found).replace("\x00", " ").split())
    return line[:MAX_LENGTH].encode(errors="replace").decode()
