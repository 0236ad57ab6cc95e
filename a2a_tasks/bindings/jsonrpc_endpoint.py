"""The JSON-RPC binding (A2A 1.0 §9): one URL, POST, HTTP 200 for results and errors alike."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import NoReturn

from a2a_tasks.bindings.errors import headers_of, to_a2a_error
from a2a_tasks.bindings.event_stream import STREAM_HEADERS, Envelope, send_stream
from a2a_tasks.bindings.http import ClientGone, Send, respond
from a2a_tasks.bindings.negotiation import (
    NegotiatedRequest,
    RequestContext,
    load_dialect,
    negotiate,
)
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

__all__ = ["serve_jsonrpc"]

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


class _JsonRpcExchange:
    """One request and its answer; the state reached so far decides the form of an error."""

    def __init__(self, visit: RequestContext) -> None:
        self.visit = visit
        self.id = jsonrpc.NULL
        self.method = ""
        self.params: object = None
        #: None until it is detected.
        self.dialect: Dialect | None = None

    @property
    def error_dialect(self) -> Dialect:
        """The dialect for an error, at any time."""
        return self.dialect or load_dialect(
            error_dialect(self.visit.mount, self.method, self.params)
        )

    async def read(self) -> jsonrpc.JsonRpcCall:
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
        return call

    async def refuse(self, fault: A2AError) -> NoReturn:
        """Refuse a request by its headers; its body is read only for the id."""
        with contextlib.suppress(A2AError):
            await self.read()
        raise fault

    async def negotiate(self) -> tuple[jsonrpc.JsonRpcCall, NegotiatedRequest]:
        """Do everything that precedes the decoding of the operation."""
        if self.visit.request.method != "POST":
            raise MethodNotAllowed(allow="POST")
        caller = await self.visit.caller()  # before the body is read
        try:
            version = self.visit.version()
            if called := self.visit.request.unreadable:
                raise WrongContentType("Send application/json", mediaType=called)
        except A2AError as fault:
            await self.refuse(fault)
        call = await self.read()
        params = call.params if isinstance(call.params, Mapping) else {}
        detection = DetectionInput(method=call.method, params=params, version=version)
        dialect = self.dialect = await self.visit.detect(by_call, detection, caller)
        operation = dialect.methods.get(call.method)
        return call, negotiate(self.visit, dialect, caller, Binding.JSONRPC, operation)

    def streams_refusals(self) -> bool:
        """Return whether the client expects an event stream, even for an error."""
        name = self.error_dialect.methods.get(self.method)
        return bool(name and BY_NAME[name].streams and self.error_dialect.features.streams_refusals)

    async def answer(self, send: Send) -> None:
        """Execute the operation and send its result."""
        call, found = await self.negotiate()
        dialect = found.dialect
        name = dialect.methods[call.method]
        result = await self.visit.table[name](dialect.decode(name, call.params), found.call)
        if not BY_NAME[name].streams:
            body = jsonrpc.result(call.id, dialect.answer(name, found.present(result)))
            await respond(send, 200, body, found.headers)
            return
        self.visit.observed.streams(result)
        envelope = Envelope(
            jsonrpc.begin_result(call.id),
            b"}",
            lambda fault: jsonrpc.error(call.id, dialect.error(fault)),
        )
        await send_stream(
            self.visit.request,
            send,
            result,
            dialect=dialect,
            envelope=envelope,
            headers=found.headers,
        )


async def serve_jsonrpc(visit: RequestContext, send: Send) -> None:
    """Answer one JSON-RPC request to an agent."""
    exchange = _JsonRpcExchange(visit)
    with visit.observed.by(Binding.JSONRPC, visit.request.headers) as observed:
        try:
            await exchange.answer(send)
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
            await respond(send, status, body, headers)
