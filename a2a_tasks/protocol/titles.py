"""The beginning of a message's text on one line, as lists show it."""

from __future__ import annotations

from collections.abc import Iterable

from a2a_tasks.protocol.values import Part

__all__ = ["MAX_TITLE", "title_of"]

#: Maximum number of characters of a title, and of those of the message that are looked at for it.
MAX_TITLE, MAX_LOOKED_AT = 200, 800


def title_of(parts: Iterable[Part]) -> str:
    """Return the texts of the parts on one line, cut, storable in any database.

    It is empty without text, and after a longer run of blanks than is looked at.
    """
    found, length = [], 0
    for part in parts:
        if isinstance(part.text, str) and length < MAX_LOOKED_AT:
            found.append(part.text[: MAX_LOOKED_AT - length])
            length += len(found[-1])
    line = " ".join(" ".join(found).replace("\x00", " ").split())
    return line[:MAX_TITLE].encode(errors="replace").decode()
