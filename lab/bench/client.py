"""A raw asyncio client for A2A 1.0 JSON-RPC, small and quick, so that it is not the bottleneck.

It holds no SDK and no HTTP library on purpose: one POST on its own connection, and each event of a stream counted
and checked as it arrives.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

VERSION = "1.0"
COMPLETED = "TASK_STATE_COMPLETED"
CHUNK_ID = re.compile(rb"#(\d+);")
CHUNK_SIZE = re.compile(rb"content-length: *(\d+)")

Result = dict[str, Any]


class WrongAnswer(RuntimeError):
    """The answer of a server is wrong."""


@dataclass(frozen=True)
class Endpoint:
    """Where a JSON-RPC endpoint listens."""

    url: str
    #: API key to show; empty = none.
    key: str = ""

    @property
    def host(self) -> str:
        """The name or address."""
        return urlsplit(self.url).hostname or "127.0.0.1"

    @property
    def port(self) -> int:
        """The TCP port."""
        return urlsplit(self.url).port or 80

    @property
    def path(self) -> str:
        """The path of the URL."""
        return urlsplit(self.url).path or "/"


def rpc(method: str, params: Result) -> str:
    """A JSON-RPC request."""
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


def send(
    text: str, *, message_id: str = "", streaming: bool = False, immediate: bool = False
) -> str:
    """A SendMessage or SendStreamingMessage request with one text part."""
    message = {
        "messageId": message_id or uuid.uuid4().hex,
        "role": "ROLE_USER",
        "parts": [{"text": text}],
    }
    params: Result = {"message": message}
    if immediate:
        params["configuration"] = {"returnImmediately": True}
    return rpc("SendStreamingMessage" if streaming else "SendMessage", params)


class Post(asyncio.Protocol):
    """One POST on its own connection. A JSON answer ends up in `body`; of a stream each `data:` line is counted."""

    def __init__(
        self, endpoint: Endpoint, body: str, on_first: Callable[[Post], None] | None
    ) -> None:
        payload = body.encode()
        key = f"X-API-Key: {endpoint.key}\r\n" if endpoint.key else ""
        head = (
            f"POST {endpoint.path} HTTP/1.1\r\nHost: {endpoint.host}:{endpoint.port}\r\n"
            f"Content-Type: application/json\r\nAccept: text/event-stream, application/json\r\n"
            f"A2A-Version: {VERSION}\r\nConnection: close\r\n{key}Content-Length: {len(payload)}\r\n\r\n"
        )
        self.request = head.encode() + payload
        self.on_first = on_first
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.raw = self.line = self.body = self.first = self.head = b""
        self.status = 0
        self.left: int | None = None
        self.chunked = self.sse = self.finished = self.error = False
        self.ids: list[int] = []
        self.t0 = self.t_first = self.t_chunk = self.t_last = self.t_end = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the request."""
        self.transport = cast("asyncio.Transport", transport)
        self.t0 = time.perf_counter()
        self.transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        """Take bytes off the wire: head, then a body by chunks, by length or until the connection closes."""
        if not self.status:
            self.raw += data
            head, separator, data = self.raw.partition(b"\r\n\r\n")
            if not separator:
                return
            self.raw = b""
            self._read_head(head.lower())
        if self.chunked:
            data = self._dechunk(data)
        elif self.left is not None:
            self.left -= len(data)
        if self.sse:
            self._feed(data)
        else:
            self.body += data
        if self.left is not None and self.left <= 0:
            self._settle()
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the answer with the connection."""
        self._settle()

    def _read_head(self, head: bytes) -> None:
        self.head = head
        self.status = int(head.split(b" ", 2)[1])
        self.chunked = b"transfer-encoding: chunked" in head
        self.sse = b"text/event-stream" in head
        length = CHUNK_SIZE.search(head)
        self.left = int(length.group(1)) if length else None

    def _dechunk(self, data: bytes) -> bytes:
        raw = self.raw + data
        out, at = [], 0
        while (eol := raw.find(b"\r\n", at)) >= 0:
            size = int(raw[at:eol].split(b";")[0], 16)
            if len(raw) < eol + 4 + size:
                break
            if size == 0:
                self.left = 0
                break
            out.append(raw[eol + 2 : eol + 2 + size])
            at = eol + 4 + size
        self.raw = raw[at:]
        return b"".join(out)

    def _feed(self, data: bytes) -> None:
        *lines, self.line = (self.line + data).split(b"\n")
        now = time.perf_counter()
        for line in lines:
            if line.startswith(b"data:"):
                self._event(line[5:], now)

    def _event(self, line: bytes, now: float) -> None:
        self.t_last = now
        if not self.t_first:
            self.t_first, self.first = now, line
            if self.on_first:
                self.on_first(self)
        if b'"artifactUpdate"' in line:
            self.t_chunk = self.t_chunk or now
            self.ids += map(int, CHUNK_ID.findall(line))
        elif COMPLETED.encode() in line:
            self.finished = True
        elif b'"error"' in line:
            self.error = True

    def _settle(self) -> None:
        if not self.done.done():
            self.done.set_result(None)

    @property
    def ok(self) -> bool:
        """True if the stream ended with a completed task, and without an error."""
        return self.status == 200 and self.finished and not self.error

    @property
    def seconds(self) -> float:
        """From the request's first byte to the end of the answer."""
        return self.t_end - self.t0

    def task_id(self) -> str:
        """The id in the first event, which is the Task."""
        return str(json.loads(self.first)["result"]["task"]["id"])


async def post(
    endpoint: Endpoint,
    body: str,
    timeout: float = 60,
    on_first: Callable[[Post], None] | None = None,
) -> Post:
    """POST and wait for the end of the answer; on timeout the connection is cut and `ok` stays False."""
    loop = asyncio.get_running_loop()
    _, it = await loop.create_connection(
        lambda: Post(endpoint, body, on_first), endpoint.host, endpoint.port
    )
    try:
        await asyncio.wait_for(it.done, timeout)
    except TimeoutError:
        it.transport.abort()
    it.t_end = time.perf_counter()
    return it


async def answer(endpoint: Endpoint, body: str, timeout: float = 60) -> tuple[Result, float]:
    """The JSON-RPC result and the seconds it took; raises WrongAnswer on anything else."""
    it = await post(endpoint, body, timeout)
    if it.status != 200:
        raise WrongAnswer(f"HTTP {it.status} {it.body[:200]!r}")
    document = json.loads(it.body)
    if "result" not in document:
        raise WrongAnswer(f"JSON-RPC error {str(document)[:200]}")
    return document["result"], it.seconds


async def call(endpoint: Endpoint, method: str, params: Result) -> tuple[Result, float]:
    """`answer` for a method and its parameters."""
    return await answer(endpoint, rpc(method, params))


async def echo(endpoint: Endpoint) -> str:
    """One blocking `echo hi`, checked; the id of its completed task. Also proves that a target is up and right."""
    result, _ = await answer(endpoint, send("echo hi"), timeout=20)
    task = result.get("task", {})
    if task.get("status", {}).get("state") != COMPLETED or not task.get("artifacts"):
        raise WrongAnswer(f"echo gave {str(result)[:200]}")
    return str(task["id"])
