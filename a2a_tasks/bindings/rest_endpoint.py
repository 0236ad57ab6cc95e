"""The HTTP+JSON binding (A2A 1.0 §11): the routes, bodies and errors of each dialect that has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from a2a_tasks.bindings.door import RequestContext, load_dialect, present, switches
from a2a_tasks.bindings.errors import headers_of, to_a2a_error
from a2a_tasks.bindings.event_stream import Envelope, send_stream
from a2a_tasks.bindings.http import A2A_JSON, JSON, ClientGone, Request, Send, respond
from a2a_tasks.caller import Caller
from a2a_tasks.conf import conf
from a2a_tasks.protocol import errors, rest
from a2a_tasks.protocol.binding import Binding
from a2a_tasks.protocol.catalogue import BY_NAME
from a2a_tasks.protocol.detection import (
    DetectionInput,
    below_v1,
    by_route,
    error_dialect_of_route,
    reads_body,
)
from a2a_tasks.protocol.dialects import Dialect
from a2a_tasks.protocol.dialects.dialect import DialectRefusal
from a2a_tasks.protocol.dialects.undecided import refuse
from a2a_tasks.protocol.errors import A2AError, ContentTypeNotSupported, InvalidParams
from a2a_tasks.protocol.jsontext import read

__all__ = ["serve_rest"]


async def _body(request: Request) -> Mapping[str, Any]:
    """Return the members of a body; none if it is empty or null.

    Raises InvalidParams, ParseError, ContentTypeNotSupported.
    """
    body = await request.body()
    if not body.strip():
        return {}
    if called := request.unreadable:
        raise ContentTypeNotSupported("Send application/json", mediaType=called)
    document = read(body, max_depth=int(conf.MAX_JSON_DEPTH))
    if document is None:
        return {}
    if not isinstance(document, Mapping):
        raise InvalidParams("The body must be a JSON object")
    return document


class _RestExchange:
    """One request and its answer; the state reached so far decides the form of an error."""

    def __init__(self, visit: RequestContext, segments: Sequence[str]) -> None:
        self.visit, self.request, self.segments = visit, visit.request, list(segments)
        self.path = unquote("/".join(segments))
        self._said: Mapping[str, Any] | None = None
        #: None while the dialects below `/v1` are not yet distinguished.
        self.dialect: Dialect | None = None
        if code := error_dialect_of_route(visit.mount, self.path):
            self.dialect = load_dialect(code).rest

    async def read_body(self) -> Mapping[str, Any]:
        """Return the members of the body, which is read once."""
        if self._said is None:
            self._said = await _body(self.request)
        return self._said

    @property
    def media_type(self) -> bytes:
        """`application/a2a+json` for clients that name it, if the dialect has it."""
        named = self.request.header("content-type") + self.request.header("accept")
        has = self.dialect is None or self.dialect.a2a_json
        return A2A_JSON if has and A2A_JSON.decode() in named.lower() else JSON

    async def detect(self, caller: Caller) -> Dialect:
        """Return the dialect. Raises VersionNotSupported, and the errors of a body that decides."""
        version = self.visit.version()
        params: Mapping[str, Any] = {}
        if not self.visit.mount.dialect and reads_body(self.path):
            params = await self.read_body()
        elif self.segments[:2] == ["v1", "tasks"] and len(self.segments) > 2:  # noqa: PLR2004
            params = {"id": rest.subject(self.segments[2])}
        detection = DetectionInput(
            method=self.path,
            params=params,
            version=version,
            media=self.request.header("content-type") + self.request.header("accept"),
        )
        return (await self.visit.detect(by_route, detection, caller)).rest

    async def answer(self, send: Send) -> None:
        """Execute the operation and send its result; an id may end with `%3Asubscribe`, the verb if no task has it."""
        caller = await self.visit.identify()  # before the body is read
        dialect = self.dialect = await self.detect(caller)
        segments = below_v1(self.visit.mount, self.segments, dialect.code)
        try:
            await self._execute(caller, dialect, segments, send)
        except errors.TaskNotFound:
            *_, last = plain = rest.decode_verb(segments)
            if self.request.method != "GET" or plain == segments or last.endswith(":cancel"):
                raise
            await self._execute(caller, dialect, plain, send)

    async def _execute(
        self, caller: Caller, dialect: Dialect, segments: Sequence[str], send: Send
    ) -> None:
        match = rest.match(
            dialect.routes, self.request.method, segments, tenants=dialect.has_tenants
        )
        call = self.visit.enter(dialect, caller, Binding.REST, match.operation)
        result = await self.visit.table[match.operation](await self._decode(dialect, match), call)
        if BY_NAME[match.operation].streams:
            self.visit.observed.streams(result)
            bare = Envelope(b"", b"", lambda fault: dialect.refusal(fault).body)
            await send_stream(
                self.request,
                send,
                result,
                dialect=dialect,
                envelope=bare,
                headers=self.visit.headers,
            )
            return
        shown = present(result, dialect, call)
        body = b"{}" if result is None else dialect.answer(match.operation, shown)
        headers = [*self.visit.headers, (b"content-type", self.media_type)]
        await respond(send, 200, body, headers)

    async def _decode(self, dialect: Dialect, match: rest.Match) -> Any:
        """Return the request of the operation. The body is then forgotten: it may be large, and the answer take hours."""
        query = rest.query_params(self.request.query)
        if self.request.method in {"GET", "DELETE"}:
            return dialect.decode_route(match, query, query)
        body = await self.read_body()
        self._said = None
        return dialect.decode_route(match, body, query)

    def refusal(self, fault: A2AError) -> DialectRefusal:
        """Return the answer to an error."""
        if self.dialect is None:
            return refuse(fault, switches())
        return self.dialect.refusal(fault)


async def serve_rest(visit: RequestContext, send: Send, segments: Sequence[str]) -> None:
    """Answer one HTTP+JSON request at a path below a mount, its segments still percent-encoded."""
    exchange = _RestExchange(visit, segments)
    with visit.observed.by(Binding.REST, visit.request.headers) as observed:
        try:
            await exchange.answer(send)
        except ClientGone as gone:
            observed.note_fault(gone)
        except Exception as raised:  # noqa: BLE001 - after any failure the client gets an answer
            fault = to_a2a_error(raised)
            observed.note_fault(fault)
            refusal = exchange.refusal(fault)
            media_type = refusal.media_type.encode() or exchange.media_type
            headers = [*headers_of(fault, visit.agent), (b"content-type", media_type)]
            await respond(send, refusal.status, refusal.body, headers)
