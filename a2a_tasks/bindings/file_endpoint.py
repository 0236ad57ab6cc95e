"""Downloads of files: streamed in pieces, as attachments that no browser runs on the host's origin."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import parse_qs, quote

from django.core.files.base import File

from a2a_tasks.access.authentication import identify
from a2a_tasks.agents import Agent
from a2a_tasks.bindings.errors import headers_of, to_a2a_error
from a2a_tasks.bindings.http import Headers, Request, Send, respond
from a2a_tasks.caller import ANONYMOUS
from a2a_tasks.operations.download_file import (
    Download,
    FileRow,
    chunks,
    download_file,
    requires_caller,
)
from a2a_tasks.protocol import rest
from a2a_tasks.protocol.media_types import UNKNOWN, plain

__all__ = ["requires_caller", "serve_file", "match_file"]

#: Segments of a file's path below an agent. No route of a dialect looks like it.
SEGMENTS = 2
PATH = re.compile(r"files/([0-9a-f]{32})")
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)
#: Types that browsers show without running code; files of other types are sent as UNKNOWN.
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
class ByteRange:
    """The range of bytes that is sent."""

    status: int
    first: int
    length: int
    #: Size of the whole file.
    size: int

    @property
    def headers(self) -> Headers:
        """The headers of the range (RFC 9110 §14.4)."""
        length: Headers = [(b"content-length", b"%d" % self.length)]
        if self.status == 200:  # noqa: PLR2004 - OK
            return length
        part = f"{self.first}-{self.first + self.length - 1}" if self.length else "*"
        return [*length, (b"content-range", f"bytes {part}/{self.size}".encode())]


def span(header: str, size: int) -> ByteRange:
    """Return the range that a `Range` header asks for (RFC 9110 §14.2): one range, else the whole file."""
    found = _RANGE.fullmatch(header.strip())
    if found is None or not (found[1] or found[2]):
        return ByteRange(200, 0, size, size)
    if not found[1]:
        first, end = max(0, size - int(found[2])), size
    else:
        first, end = int(found[1]), min(size, int(found[2]) + 1 if found[2] else size)
        if found[2] and int(found[2]) < first:
            return ByteRange(200, 0, size, size)
    if first >= end:
        return ByteRange(416, 0, 0, size)
    return ByteRange(206, first, end - first, size)


def _describe(media_type: str, filename: str) -> Headers:
    """Return type and name of an attachment (RFC 6266)."""
    kind = plain(media_type)
    served = kind if _HARMLESS.fullmatch(kind) else UNKNOWN
    name = filename.replace("\\", "/").rpartition("/")[2]
    name = "".join(char for char in name if char.isprintable())[-200:] or "file"
    disposition = f"attachment; filename*=UTF-8''{quote(name, safe='', errors='replace')}"
    return [
        (b"content-type", served.encode()),
        (b"content-disposition", disposition.encode()),
    ]


def match_file(request: Request, below: Sequence[str]) -> str | None:
    """Return the id of the file that a path below an agent names; None if the path is another route."""
    found = PATH.fullmatch("/".join(below)) if len(below) == SEGMENTS else None
    return found[1] if found and request.method in {"GET", "HEAD"} else None


async def serve_file(request: Request, send: Send, agent: Agent, file_id: str) -> None:
    """Send a file, or the requested range of it."""
    try:
        row, file = await _find_file(request, agent, file_id)
    except Exception as raised:  # noqa: BLE001 - after any failure the client gets an answer
        fault = to_a2a_error(raised)
        await respond(send, fault.http_status, rest.error_body(fault), headers_of(fault, agent))
        return
    try:
        await _send(request, send, row, file)
    finally:
        await asyncio.to_thread(file.close)


async def _find_file(request: Request, agent: Agent, file_id: str) -> Download:
    """Return the file, if the URL is valid for the caller. Raises the errors of `identify` and `download_file`."""
    caller = await identify(request.credentials, agent) if requires_caller() else ANONYMOUS
    query = parse_qs(request.query)
    expires, signature = (query.get(name, [""])[0] for name in ("expires", "signature"))
    address = request.credentials.address
    return await download_file(
        agent, file_id, expires=expires, signature=signature, caller=caller, address=address
    )


async def _send(request: Request, send: Send, row: FileRow, file: File[bytes]) -> None:
    part = span(request.header("range"), row.size)
    described = _describe(row.media_type, row.filename)
    etag = (b"etag", f'"{row.sha256}"'.encode())
    headers = [*described, *_NEVER_RUN, etag, *part.headers]
    await send({"type": "http.response.start", "status": part.status, "headers": headers})
    length = 0 if request.method == "HEAD" else part.length
    async with contextlib.aclosing(chunks(file, part.first, length)) as pieces:
        async for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
