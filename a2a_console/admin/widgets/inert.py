"""Untrusted bytes as responses that run nothing wherever they are opened."""

from __future__ import annotations

import base64
import binascii
import io
import json
from typing import IO, Any

from django.core.files.base import File
from django.http import FileResponse

from a2a_console.admin.widgets.formatting import escape_name
from a2a_console.admin.widgets.parts import PDF, SHOWN, type_of
from a2a_tasks.protocol.media_types import UNKNOWN, plain

__all__ = ["part_of", "send_file"]

#: Under this policy, any content has no origin, fetches nothing and runs nothing.
POLICY = "sandbox; default-src 'none'"
#: The members of a stored body that may hold parts, besides the body itself.
HOLDERS = ("status", "message", "artifact")


def send_file(
    content: IO[bytes] | File[bytes], media_type: str, filename: str, *, show: bool
) -> FileResponse:
    """Return the bytes as a download; inline if `show` is set and they are an image or audio."""
    kind = plain(media_type)
    is_shown = show and kind in SHOWN
    answer = FileResponse(
        content, as_attachment=not is_shown, filename=escape_name(filename) or "file"
    )
    answer.headers["Content-Type"] = kind if is_shown or kind == PDF else UNKNOWN
    answer.headers["Content-Security-Policy"] = POLICY
    return answer


def part_of(body: str, index: int) -> tuple[IO[bytes], str, str] | None:
    """Return content, media type and name of one part of a stored body; None if it has no content."""
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
