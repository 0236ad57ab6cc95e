"""Stored text made fit for eyes. It was written by strangers: it is only ever handed to templates as plain text."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F, TextField
from django.db.models.expressions import Combinable
from django.db.models.functions import Left, Length, Right
from django.utils import timezone

from a2a_tasks.durations import duration

__all__ = [
    "LIMIT",
    "Shown",
    "beginning",
    "duration",
    "ending",
    "moment",
    "named",
    "parsed",
    "sendable",
    "shown",
    "size",
]

#: Characters of one body that are read from the database and shown.
LIMIT = 10_000
#: Indentation can make a nested body much larger than it is; then it is shown as stored.
INFLATED = 8 * LIMIT


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A stored body: its text for the page, and the document if the whole of it was read."""

    text: str
    size: int
    document: Any = None

    @property
    def is_cut(self) -> bool:
        """Tell whether there is more than is shown."""
        return self.size > LIMIT

    @property
    def limit(self) -> int:
        """Give the bound, for the page to name."""
        return LIMIT


def beginning(field: str) -> Combinable:
    """Select the first LIMIT characters: one row may hold megabytes."""
    return Left(F(field), LIMIT, output_field=TextField())


def ending(field: str) -> Combinable:
    """Select the last LIMIT characters: a trace says at its end what happened."""
    return Right(F(field), LIMIT, output_field=TextField())


def size(field: str) -> Combinable:
    """Select the length."""
    return Length(F(field))


def shown(text: str, length: int) -> Shown | None:
    """Make a body presentable: indented if all of it is here, else as stored. None if there is no body."""
    if not text:
        return None
    if length > LIMIT:
        return Shown(text=sendable(text), size=length)
    try:
        document = json.loads(text)
        pretty = json.dumps(document, indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return Shown(text=sendable(text), size=length)
    if len(pretty) > INFLATED:
        pretty = text
    return Shown(text=sendable(pretty), size=length, document=document)


def parsed(text: str) -> Any:
    """The document in a stored body; None if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def named(name: str, longest: int = 200) -> str:
    """A name as it is seen: what would turn it round, hide in it or break its line is written out (Unicode TR 36)."""
    cut = name if len(name) <= longest else name[:longest] + "…"
    return sendable("".join(f"[U+{ord(c):04X}]" if _hides(c) else c for c in cut))


def _hides(character: str) -> bool:
    return unicodedata.category(character) in {"Cc", "Cf", "Zl", "Zp"}


def sendable(text: str) -> str:
    """Half a surrogate pair cannot leave in UTF-8; the page must not fail over it."""
    return text.encode(errors="replace").decode()


def moment(at: datetime | None) -> str:
    """Say a moment to the second: beside a log, "noon" is no answer."""
    return timezone.localtime(at).strftime("%Y-%m-%d %H:%M:%S") if at else ""
