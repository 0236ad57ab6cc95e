"""Downloads of files: streamed piece by piece, as attachments that no browser runs on the host's origin."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import parse_qs, quote

from django.core.files.base import File

from a2a_tasks.access.callers import identify
from a2a_tasks.agents import Agent
from a2a_tasks.bindings.faults import headers_of, told
from a2a_tasks.bindings.http import Headers, Request, Send, respond
from a2a_tasks.caller import ANONYMOUS
from a2a_tasks.operations.download_file import (
    Download,
    Row,
    authenticated,
    chunks,
    download_file,
)
from a2a_tasks.protocol import rest
from a2a_tasks.protocol.media_types import UNKNOWN, plain

__all__ = ["authenticated", "serve_file", "serving_file"]

#: Below an agent. No route of a dialect looks like it.
SEGMENTS = 2
PATH = re.compile(r"files/([0-9a-f]{32})")
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)
#: What browsers show without running it; anything else they are told nothing of.
_HARMLESS = re.compile(
    r"image/(png|jpeg|gif|webp|avif)|(audio|video)/[\w.+-]{1,100}|text/(plain|csv)|application/(json|pdf|zip)",
    re.ASCII,
)
_NEVER_RUN: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"sandbox; default-src 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"private, max-age=0, must-revalidate"),
    (b"accept-ranges", b"bytes"),
]


@dataclass(frozen=True, slots=True)
class Span:
    """The bytes that are sent, of so many."""

    status: int
    first: int
    length: int
    #: Of the whole file.
    size: int

    @property
    def headers(self) -> Headers:
        """How the answer says it (RFC 9110 §14.4)."""
        length: Headers = [(b"content-length", b"%d" % self.length)]
        if self.status == 200:  # noqa: PLR2004 - OK
            return length
        part = f"{self.first}-{self.first + self.length - 1}" if self.length else "*"
        return [*length, (b"content-range", f"bytes {part}/{self.size}".encode())]


def span(asked: str, size: int) -> Span:
    """What a `Range` header asks for (RFC 9110 §14.2): one range, else all of it."""
    found = _RANGE.fullmatch(asked.strip())
    if found is None or not (found[1] or found[2]):
        return Span(200, 0, size, size)
    if not found[1]:
        first, end = max(0, size - int(found[2])), size
    else:
        first, end = int(found[1]), min(size, int(found[2]) + 1 if found[2] else size)
        if found[2] and int(found[2]) < first:
            return Span(200, 0, size, size)
    if first >= end:
        return Span(416, 0, 0, size)
    return Span(206, first, end - first, size)


def _described(media_type: str, filename: str) -> Headers:
    """Type and name of an attachment (RFC 6266)."""
    kind = plain(media_type)
    shown = kind if _HARMLESS.fullmatch(kind) else UNKNOWN
    name = filename.replace("\\", "/").rpartition("/")[2]
    name = "".join(char for char in name if char.isprintable())[-200:] or "file"
    disposition = f"attachment; filename*=UTF-8''{quote(name, safe='', errors='replace')}"
    return [
        (b"content-type", shown.encode()),
        (b"content-disposition", disposition.encode()),
    ]


def serving_file(request: Request, below: Sequence[str]) -> str | None:
    """The id of the file whose path this is, below an agent; None if it is another one's."""
    found = PATH.fullmatch("/".join(below)) if len(below) == SEGMENTS else None
    return found[1] if found and request.method in {"GET", "HEAD"} else None


async def serve_file(request: Request, send: Send, agent: Agent, file_id: str) -> None:
    """Send the file whose URL this is, or the range of it that is asked for."""
    try:
        row, file = await _asked(request, agent, file_id)
    except Exception as raised:  # noqa: BLE001 - whatever it is, the client gets an answer
        fault = told(raised)
        await respond(send, fault.http_status, rest.error_body(fault), headers_of(fault, agent))
        return
    try:
        await _send(request, send, row, file)
    finally:
        await asyncio.to_thread(file.close)


async def _asked(request: Request, agent: Agent, file_id: str) -> Download:
    """The file, if this is a URL of it for who asks. Raises what `identify` and `download_file` raise."""
    caller = await identify(request.credentials, agent) if authenticated() else ANONYMOUS
    said = parse_qs(request.query)
    expires, signature = (said.get(name, [""])[0] for name in ("expires", "signature"))
    address = request.credentials.address
    return await download_file(
        agent, file_id, expires=expires, signature=signature, caller=caller, address=address
    )


async def _send(request: Request, send: Send, row: Row, file: File[bytes]) -> None:
    asked = span(request.header("range"), row.size)
    described = _described(row.media_type, row.filename)
    etag = (b"etag", f'"{row.sha256}"'.encode())
    headers = [*described, *_NEVER_RUN, etag, *asked.headers]
    await send({"type": "http.response.start", "status": asked.status, "headers": headers})
    length = 0 if request.method == "HEAD" else asked.length
    async with contextlib.aclosing(chunks(file, asked.first, length)) as pieces:
        async for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
