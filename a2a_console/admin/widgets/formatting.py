"""Stored text for display. It is untrusted, so templates only ever get it as plain text."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from typing import Any

from a2a_console.excerpts import LIMIT

__all__ = ["FormattedBody", "escape_name", "mask_numbers", "parse_body", "sendable", "format_body"]

#: Indentation can make a nested body much larger; above this number of characters it is shown as stored.
INFLATED = 8 * LIMIT
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, kw_only=True)
class FormattedBody:
    """A stored body: its text for the page, and the document if the whole of it was read."""

    text: str
    size: int
    document: Any = None

    @property
    def is_cut(self) -> bool:
        """True if the text is only a part of the body."""
        return self.size > LIMIT

    @property
    def limit(self) -> int:
        """The largest number of characters, for the page to name."""
        return LIMIT


def format_body(text: str, length: int) -> FormattedBody | None:
    """Return the body for display: indented if it was read whole, else as stored. None if there is no body."""
    if not text:
        return None
    if length > LIMIT:
        return FormattedBody(text=sendable(text), size=length)
    try:
        document = json.loads(text)
        pretty = json.dumps(document, indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return FormattedBody(text=sendable(text), size=length)
    if len(pretty) > INFLATED:
        pretty = text
    return FormattedBody(text=sendable(pretty), size=length, document=document)


def parse_body(text: str) -> Any:
    """Return the JSON document in a stored body; None if it cannot be parsed."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def escape_name(name: str, longest: int = 200) -> str:
    """Return the name with control and format characters written out: bidi, invisible, line breaks (Unicode TR 36)."""
    cut = name if len(name) <= longest else name[:longest] + "…"
    return sendable("".join(f"[U+{ord(c):04X}]" if _hides(c) else c for c in cut))


def _hides(character: str) -> bool:
    return unicodedata.category(character) in {"Cc", "Cf", "Zl", "Zp"}


def sendable(text: str) -> str:
    """Return the text with lone surrogates replaced: they cannot be encoded as UTF-8, and would break the page."""
    return text.encode(errors="replace").decode()


def mask_numbers(text: str) -> str:
    """Return the text with 0 for each number: tasks whose texts are then equal have failed alike."""
    return _NUMBER.sub("0", text)
