"""An ASGI client in the process of the application: it shows every byte when it comes, and can leave at any moment."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Awaitable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any
from urllib.parse import unquote

from a2a_tasks.bindings.http import ASGIApp, Scope

__all__ = ["Client", "Event", "Exchange", "Response", "Stream", "ends"]

#: Seconds anything may take; reached only when something is broken.
PATIENCE = 20.0
_END = object()


async def ends(work: Awaitable[None], seconds: float = PATIENCE) -> None:
    """Await it, but fail when it takes so long; it need not obey a cancellation, as under `asyncio.timeout`."""
    task = asyncio.ensure_future(work)
    _, late = await asyncio.wait({task}, timeout=seconds)
    assert not late, f"{task.get_coro()!r} does not end: a process waits for it for ever"
    task.result()


#: A comment, which may tell when to try again, or an event.
_BLOCK = re.compile(r":.*\n(?:retry: \d+\n\n)?|[^:](?s:.*?)\n\n")


@dataclass(frozen=True)
class Response:
    """A whole answer."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        """The only header of that name, or None."""
        found = [value for key, value in self.headers if key == name]
        assert len(found) < 2, f"{name} was sent twice: {found}"
        return found[0] if found else None

    @property
    def json(self) -> Any:
        """The body, parsed."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Event:
    """One block of an event stream: a comment, or data with perhaps an id and a name."""

    id: int | None = None
    name: str = "message"
    data: Any = None
    comment: str | None = None
    #: What stands behind the number in the id, where a task has taken over the id of another.
    mark: str = ""

    @classmethod
    def of(cls, block: str) -> Event:
        """Parse one block; anything but the lines A2A uses fails."""
        if block.startswith(":"):
            return cls(comment=block[1:].strip())
        lines = dict(line.split(": ", 1) for line in block.split("\n"))
        assert lines.keys() <= {"id", "event", "data"}, block
        number, _, mark = lines.get("id", "").partition("-")
        name, data = lines.get("event", "message"), json.loads(lines["data"])
        return cls(int(number) if number else None, name, data, mark=mark)


class Exchange:
    """One request and its answer, message by message."""

    def __init__(self, app: ASGIApp, scope: Scope) -> None:
        self._to_app: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._from_app: asyncio.Queue[Any] = asyncio.Queue()
        #: How many messages of the request the application has taken.
        self.taken = 0
        self.status = 0
        self.headers: list[tuple[str, str]] = []
        #: The application reads it as soon as the test waits for something.
        self.scope = scope
        self._task = asyncio.create_task(self._run(app, scope))

    async def _run(self, app: ASGIApp, scope: Scope) -> None:
        async def receive() -> dict[str, Any]:
            message = await self._to_app.get()
            self.taken += 1
            return message

        async def send(message: Any) -> None:
            self._from_app.put_nowait(message)

        try:
            await app(scope, receive, send)
        finally:
            self._from_app.put_nowait(_END)

    @property
    def answered(self) -> bool:
        """Has the application said anything, or ended?"""
        return not self._from_app.empty()

    def upload(self, body: bytes, *, more: bool = False) -> None:
        """Give the application (a piece of) the body."""
        self._to_app.put_nowait({"type": "http.request", "body": body, "more_body": more})

    def leave(self) -> None:
        """Hang up."""
        self._to_app.put_nowait({"type": "http.disconnect"})

    async def _message(self) -> Any:
        async with asyncio.timeout(PATIENCE):
            message = await self._from_app.get()
        if message is _END:
            self._from_app.put_nowait(_END)
            await self._task
        return message

    async def begin(self) -> None:
        """Wait for status and headers."""
        message = await self._message()
        assert message is not _END, "the application said nothing"
        assert message["type"] == "http.response.start"
        self.status = message["status"]
        self.headers = [(k.decode().lower(), v.decode()) for k, v in message.get("headers", [])]

    async def piece(self) -> bytes | None:
        """The next piece of the answer's body; None at its end."""
        message = await self._message()
        if message is _END:
            return None
        assert message["type"] == "http.response.body"
        body: bytes = message.get("body", b"")
        if not body and not message.get("more_body"):
            return None
        return body

    async def response(self) -> Response:
        """The whole answer."""
        await self.begin()
        pieces = []
        while (piece := await self.piece()) is not None:
            pieces.append(piece)
        await self.over()
        return Response(self.status, self.headers, b"".join(pieces))

    async def over(self) -> None:
        """Wait until the application is done with the request."""
        async with asyncio.timeout(PATIENCE):
            await asyncio.shield(self._task)

    async def said_nothing(self) -> bool:
        """Is the request over without an answer?"""
        return await self._message() is _END

    async def __aenter__(self) -> Exchange:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.leave()
        if kind is not None:
            self._task.cancel()
            with contextlib.suppress(BaseException):
                await self._task
        else:
            await self.over()


class Stream:
    """An answer read as server-sent events."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self._text = ""

    @property
    def status(self) -> int:
        """The status of the answer."""
        return self.exchange.status

    def header(self, name: str) -> str | None:
        """A header of the answer."""
        return Response(self.status, self.exchange.headers, b"").header(name)

    async def refusal(self) -> Response | None:
        """The whole answer, if it is no stream that goes on: an error, perhaps as the only event."""
        if self.header("content-length") is None:
            return None
        pieces = []
        while (piece := await self.exchange.piece()) is not None:
            pieces.append(piece.removeprefix(b"data: "))
        return Response(self.status, self.exchange.headers, b"".join(pieces))

    async def block(self) -> Event | None:
        """The next event or comment; None at the end."""
        while not (block := _BLOCK.match(self._text)):
            piece = await self.exchange.piece()
            if piece is None:
                assert not self._text, f"the stream ended amid {self._text!r}"
                return None
            self._text += piece.decode()
        self._text = self._text[block.end() :]
        return Event.of(block[0].rstrip("\n"))

    async def next(self) -> Event | None:
        """The next event, whatever was commented before it; None at the end."""
        while (event := await self.block()) is not None:
            if event.comment is None:
                return event
        return None

    async def rest(self) -> list[Event]:
        """All events to the end."""
        found = []
        while (event := await self.next()) is not None:
            found.append(event)
        return found


class Client:
    """Asks an application, as a client on the other side of a socket would."""

    def __init__(self, app: ASGIApp, base: str = "") -> None:
        self.app, self.base = app, base

    def exchange(
        self, method: str, path: str, headers: Mapping[str, str] | None = None
    ) -> Exchange:
        """Begin a request whose body is still to come."""
        raw, _, query = (self.base + path).partition("?")
        given = {"host": "localhost:8000", **(headers or {})}
        scope: Scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(raw),
            "raw_path": raw.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(k.lower().encode(), v.encode("latin-1")) for k, v in given.items()],
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 8000),
        }
        return Exchange(self.app, scope)

    async def ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Ask, and read the whole answer."""
        async with self.exchange(method, path, headers) as exchange:
            exchange.upload(body)
            return await exchange.response()

    async def get(self, path: str, headers: Mapping[str, str] | None = None) -> Response:
        """GET."""
        return await self.ask("GET", path, headers=headers)

    async def post(
        self, path: str, document: object, headers: Mapping[str, str] | None = None
    ) -> Response:
        """POST a document as JSON."""
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        return await self.ask(
            "POST", path, body, {"content-type": "application/json", **(headers or {})}
        )

    @contextlib.asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Stream]:
        """Ask, and read the answer as it comes; leave at the end of the block."""
        async with self.exchange(method, path, headers) as exchange:
            exchange.upload(body)
            await exchange.begin()
            yield Stream(exchange)
