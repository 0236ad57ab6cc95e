"""The JSON-RPC binding (A2A 1.0 §9): one URL, POST, HTTP 200 for results and errors alike."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any, NoReturn

from a2a_tasks.bindings.door import RequestContext, load_dialect, present
from a2a_tasks.bindings.errors import headers_of, to_a2a_error
from a2a_tasks.bindings.event_stream import STREAM_HEADERS, Envelope, send_stream
from a2a_tasks.bindings.http import JSON, NOSNIFF, ClientGone, Headers, Send, respond
from a2a_tasks.conf import conf
from a2a_tasks.protocol import jsonrpc
from a2a_tasks.protocol.binding import Binding
from a2a_tasks.protocol.catalogue import BY_NAME
from a2a_tasks.protocol.detection import DetectionInput, by_call, error_dialect
from a2a_tasks.protocol.dialects import Dialect
from a2a_tasks.protocol.errors import (
    A2AError,
    ContentTypeNotSupported,
    Forbidden,
    MethodNotAllowed,
    Overloaded,
    RateLimited,
    TooLarge,
    Unauthenticated,
)
from a2a_tasks.protocol.sse import error_frame

__all__ = ["LongAnswer", "serve_jsonrpc"]

OK = 200
#: Refusals of the transport keep their HTTP status; all others are 200.
_TRANSPORT = (
    *(Unauthenticated, Forbidden, MethodNotAllowed),
    *(TooLarge, RateLimited, Overloaded),
)


class WrongContentType(ContentTypeNotSupported):
    """The body is not declared as JSON: refused before it is read, with status 415."""


def _status(fault: A2AError) -> int:
    if isinstance(fault, WrongContentType):
        return 415
    return fault.http_status if isinstance(fault, _TRANSPORT) else OK


class LongAnswer:
    """The answer to one request, which begins before its outcome is known if that takes longer than KEEPALIVE_SECONDS.

    White space before the JSON is its sign of life: httpx, and so the Python SDKs, give up after 5 seconds without a
    byte. JSON may begin with white space (RFC 8259 §2), and the status of JSON-RPC is 200 whatever comes. HTTP+JSON has
    no such sign: there the status tells the outcome.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun = False

    @contextlib.asynccontextmanager
    async def signs_of_life(self, headers: Headers) -> AsyncIterator[None]:
        """Send the headers and white space while the block takes long."""
        over = asyncio.Event()
        signs: list[asyncio.Task[None]] = []

        def begin() -> None:
            signs.append(asyncio.create_task(self._give(headers, over)))

        seconds = float(conf.KEEPALIVE_SECONDS)
        timer = asyncio.get_running_loop().call_later(seconds, begin) if seconds else None
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()
            over.set()  # a cancellation could interrupt a send
            for task in signs:
                await task

    async def _give(self, headers: Headers, over: asyncio.Event) -> None:
        while not over.is_set():
            if not self._begun:
                self._begun = True
                await self._begin(headers)
            await self._send({"type": "http.response.body", "body": b" ", "more_body": True})
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(float(conf.KEEPALIVE_SECONDS)):
                    await over.wait()

    async def _begin(self, headers: Headers) -> None:
        ours = [NOSNIFF, (b"content-type", JSON), (b"x-accel-buffering", b"no")]
        await self._send(
            {"type": "http.response.start", "status": 200, "headers": [*headers, *ours]}
        )

    async def respond(self, status: int, body: bytes, headers: Headers) -> None:
        """Send the outcome. A response that has begun keeps its status and headers."""
        if self._begun:
            await self._send({"type": "http.response.body", "body": body})
        else:
            await respond(self._send, status, body, headers)


class _JsonRpcExchange:
    """One request and its answer; the state reached so far decides the form of an error."""

    def __init__(self, visit: RequestContext) -> None:
        self.visit = visit
        self.id = jsonrpc.NULL
        self.method = ""
        #: Until they are decoded: they may be large, and the answer may take hours.
        self.params: Any = None
        #: None until it is detected.
        self.dialect: Dialect | None = None

    @property
    def error_dialect(self) -> Dialect:
        """The dialect for an error, at any time."""
        return self.dialect or load_dialect(
            error_dialect(self.visit.mount, self.method, self.params)
        )

    async def read(self) -> None:
        """Read the call, whose id and method are used in every answer from here on.

        Raises ParseError, InvalidRequest, InvalidParams, TooLarge.
        """
        body = await self.visit.request.body()
        try:
            call = jsonrpc.read_call(body, max_depth=int(conf.MAX_JSON_DEPTH))
        except jsonrpc.BadCall as bad:
            self.id = bad.id
            raise bad.cause from None
        self.id, self.method, self.params = call.id, call.method, call.params

    async def refuse(self, fault: A2AError) -> NoReturn:
        """Refuse a request by its headers; its body is read only for the id."""
        with contextlib.suppress(A2AError):
            await self.read()
        raise fault

    async def enter(self) -> str:
        """Do everything that precedes the decoding of the operation; return its name."""
        visit = self.visit
        if visit.request.method != "POST":
            raise MethodNotAllowed(allow="POST")
        caller = await visit.identify()  # before the body is read
        try:
            version = visit.version()
            if called := visit.request.unreadable:
                raise WrongContentType("Send application/json", mediaType=called)
        except A2AError as fault:
            await self.refuse(fault)
        await self.read()
        params = self.params if isinstance(self.params, Mapping) else {}
        detection = DetectionInput(method=self.method, params=params, version=version)
        dialect = self.dialect = await visit.detect(by_call, detection, caller)
        visit.enter(dialect, caller, Binding.JSONRPC, dialect.methods.get(self.method))
        return dialect.methods[self.method]

    def streams_refusals(self) -> bool:
        """Return whether the client expects an event stream, even for an error."""
        name = self.error_dialect.methods.get(self.method)
        return bool(name and BY_NAME[name].streams and self.error_dialect.features.streams_refusals)

    async def answer(self, send: Send, plain: LongAnswer) -> None:
        """Execute the operation and send its result."""
        name = await self.enter()
        visit, dialect = self.visit, self.visit.dialect
        work = visit.table[name](dialect.decode(name, self.params), visit.call)
        self.params = None
        if not BY_NAME[name].streams:
            async with plain.signs_of_life(visit.headers):
                shown = dialect.answer(name, present(await work, dialect, visit.call))
                body = jsonrpc.result(self.id, shown)
            await plain.respond(200, body, visit.headers)
            return
        result = await work
        visit.observed.streams(result)
        envelope = Envelope(
            jsonrpc.begin_result(self.id),
            b"}",
            lambda fault: jsonrpc.error(self.id, dialect.error(fault)),
        )
        await send_stream(
            visit.request,
            send,
            result,
            dialect=dialect,
            envelope=envelope,
            headers=visit.headers,
        )


async def serve_jsonrpc(visit: RequestContext, send: Send) -> None:
    """Answer one JSON-RPC request to an agent."""
    exchange, plain = _JsonRpcExchange(visit), LongAnswer(send)
    with visit.observed.by(Binding.JSONRPC, visit.request.headers) as observed:
        try:
            await exchange.answer(send, plain)
        except ClientGone as gone:
            observed.note_fault(gone)
        except Exception as raised:  # noqa: BLE001 - after any failure the client gets an answer
            fault = to_a2a_error(raised)
            observed.note_fault(fault)
            status, headers = _status(fault), headers_of(fault, visit.agent)
            body = jsonrpc.error(exchange.id, exchange.error_dialect.error(fault))
            if status == OK and exchange.streams_refusals():
                body = error_frame(body, named=False)
                headers = [*headers, *STREAM_HEADERS]
            await plain.respond(status, body, headers)
