"""Stored text for display. It is untrusted, so templates only ever get it as plain text."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass
from typing import Any

from django.db.models import F, TextField
from django.db.models.expressions import Combinable
from django.db.models.functions import Left, Length, Right

__all__ = [
    "LIMIT",
    "FormattedBody",
    "select_start",
    "select_end",
    "escape_name",
    "parse_body",
    "sendable",
    "format_body",
    "size",
]

#: The largest number of characters of one body that are read from the database and shown.
LIMIT = 10_000
#: Indentation can make a nested body much larger; above this number of characters it is shown as stored.
INFLATED = 8 * LIMIT


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


def select_start(field: str) -> Combinable:
    """Select the first LIMIT characters: one row may hold megabytes."""
    return Left(F(field), LIMIT, output_field=TextField())


def select_end(field: str) -> Combinable:
    """Select the last LIMIT characters: the end of a traceback has its cause."""
    return Right(F(field), LIMIT, output_field=TextField())


def size(field: str) -> Combinable:
    """Select the length."""
    return Length(F(field))


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
