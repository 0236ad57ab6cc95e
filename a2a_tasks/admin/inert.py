"""Bytes of strangers as answers of their own, which run nothing wherever they are opened."""

from __future__ import annotations

import base64
import binascii
import io
import json
from typing import IO, Any

from django.core.files.base import File
from django.http import FileResponse

from a2a_tasks.admin.parts import PDF, SHOWN, type_of
from a2a_tasks.admin.shown import named
from a2a_tasks.protocol.media_types import UNKNOWN, plain

__all__ = ["part_of", "sent"]

#: Whatever the bytes are: they are in no origin, fetch nothing and run nothing.
POLICY = "sandbox; default-src 'none'"
#: Where parts may be in a stored body, beside in itself.
HOLDERS = ("status", "message", "artifact")


def sent(
    content: IO[bytes] | File[bytes], media_type: str, filename: str, *, show: bool
) -> FileResponse:
    """The bytes, to be saved; to be shown if that is asked for and they are a picture or a sound."""
    kind = plain(media_type)
    is_shown = show and kind in SHOWN
    answer = FileResponse(content, as_attachment=not is_shown, filename=named(filename) or "file")
    answer.headers["Content-Type"] = kind if is_shown or kind == PDF else UNKNOWN
    answer.headers["Content-Security-Policy"] = POLICY
    return answer


def part_of(body: str, index: int) -> tuple[IO[bytes], str, str] | None:
    """Content, media type and name of one part of a stored body; None if it has none."""
    part = _part(body, index)
    if part is None:
        return None
    name, content = part.get("filename"), b""
    if isinstance(part.get("raw"), str):
        try:
            content = base64.b64decode(part["raw"], validate=True)
        except (binascii.Error, ValueError):
            return None
    elif isinstance(part.get("text"), str):
        content, name = part["text"].encode(errors="replace"), name or "part.txt"
    elif "data" in part:
        content, name = json.dumps(part["data"], indent=2).encode(), name or "part.json"
    else:
        return None
    return io.BytesIO(content), type_of(part), str(name or "")


def _part(body: str, index: int) -> dict[str, Any] | None:
    try:
        holder = json.loads(body)
    except (ValueError, RecursionError):
        return None
    for name in HOLDERS:
        if isinstance(holder, dict) and name in holder:
            holder = holder[name]
    parts = holder.get("parts") if isinstance(holder, dict) else None
    part = parts[index] if isinstance(parts, list) and index < len(parts) else None
    return part if isinstance(part, dict) else None
