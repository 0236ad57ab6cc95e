"""The readable text of a message in one line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from a2a_console.admin.widgets.formatting import sendable

__all__ = ["text_of"]

#: The largest number of characters of text in a line.
LINE = 500


def text_of(holder: Any) -> str:
    """Join the text parts of a message or an artifact, up to a line of the page; other parts are named by kind."""
    parts = holder.get("parts") if isinstance(holder, dict) else None
    words = "".join(_words(parts)) if isinstance(parts, list) else ""
    return sendable(words if len(words) <= LINE else words[:LINE] + "…")


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
