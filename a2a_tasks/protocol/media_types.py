"""Media types of parts, and their check against an agent's modes (A2A 1.0 §4.1.6, §4.4.1)."""

from __future__ import annotations

import mimetypes
from collections.abc import Iterable

from a2a_tasks.protocol.values import UNSET, Part

__all__ = ["MAX_LENGTH", "UNKNOWN", "admits", "media_type_of", "plain"]

UNKNOWN = "application/octet-stream"
#: Characters of the longest media type in a message of another protocol: a type and a name have at most 127 each (RFC 6838).
MAX_LENGTH = 255


def plain(media_type: str) -> str:
    """Return a media type without parameters, in lower case (RFC 9110 §8.3.1)."""
    return media_type.partition(";")[0].strip().lower()


def admits(modes: Iterable[str], media_type: str) -> bool:
    """Return whether a mode admits the type.

    `text/*` admits all of a kind, `*/*` everything; parameters are ignored.
    """
    wanted = plain(media_type)
    kind = wanted.partition("/")[0]
    return not {wanted, f"{kind}/*", "*/*"}.isdisjoint(map(plain, modes))


def media_type_of(part: Part) -> str:
    """Return the media type of a part; without one, the type of its file name."""
    if part.media_type:
        return part.media_type
    if part.text is not UNSET:
        return "text/plain"
    if part.data is not UNSET:
        return "application/json"
    guessed, encoding = mimetypes.guess_type(_name(part))
    return UNKNOWN if encoding else guessed or UNKNOWN


def _name(part: Part) -> str:
    """Return the name of a file, or the path of its URL."""
    if part.filename or not isinstance(part.url, str):
        return part.filename or ""
    path = part.url.partition("#")[0].partition("?")[0].partition("://")[2]
    return path.partition("/")[2]
