"""Stored text made fit for eyes. It was written by strangers: it is only ever handed to templates as plain text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, TextField
from django.db.models.expressions import Combinable
from django.db.models.functions import Left, Length, Right
from django.utils import timezone

__all__ = [
    "LIMIT",
    "Shown",
    "beginning",
    "duration",
    "ending",
    "moment",
    "shown",
    "size",
    "text_of",
]

#: Characters of one body that are read from the database and shown.
LIMIT = 10_000
#: Indentation can make a nested body much larger than it is; then it is shown as stored.
INFLATED = 8 * LIMIT
#: Characters of readable text in a line.
LINE = 500


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
        return Shown(text=_sendable(text), size=length)
    try:
        document = json.loads(text)
        pretty = json.dumps(document, indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return Shown(text=_sendable(text), size=length)
    if len(pretty) > INFLATED:
        pretty = text
    return Shown(text=_sendable(pretty), size=length, document=document)


def text_of(holder: Any) -> str:
    """Join the text parts of a message or an artifact, up to a line of the page; other parts are named by kind."""
    parts = holder.get("parts") if isinstance(holder, dict) else None
    words = "".join(_words(parts)) if isinstance(parts, list) else ""
    return _sendable(words if len(words) <= LINE else words[:LINE] + "…")


def _words(parts: list[Any]) -> Iterator[str]:
    for part in parts:
        if not isinstance(part, dict):
            continue
        if isinstance(part.get("text"), str):
            yield part["text"]
        else:
            yield f"[{_kind(part)}]"


def _kind(part: dict[str, Any]) -> str:
    kind = next((name for name in ("data", "raw", "url") if name in part), "part")
    label = part.get("filename") or part.get("mediaType") or ""
    return f"{'file' if kind in {'raw', 'url'} else kind} {label}".strip()


def _sendable(text: str) -> str:
    """Half a surrogate pair cannot leave in UTF-8; the page must not fail over it."""
    return text.encode(errors="replace").decode()


def duration(span: timedelta) -> str:
    """Say a span in its two largest units: `3 h 5 min`."""
    seconds = max(span.total_seconds(), 0.0)
    if seconds < 10:  # noqa: PLR2004 - below that, fractions matter
        return f"{seconds:.1f} s"
    left, words = int(seconds), []
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, left = divmod(left, length)
        if count:
            words.append(f"{count} {unit}")
    return " ".join(words[:2])


def moment(at: datetime | None) -> str:
    """Say a moment to the second: beside a log, "noon" is no answer."""
    return timezone.localtime(at).strftime("%Y-%m-%d %H:%M:%S") if at else ""
