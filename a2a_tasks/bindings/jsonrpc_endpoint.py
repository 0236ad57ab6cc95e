"""The JSON-RPC binding (A2A 1.0 §9): one URL, POST, HTTP 200 for results and errors alike."""

from __future__ import annotations

from a2a_tasks.access.callers import identify
from a2a_tasks.agents import Agent
from a2a_tasks.bindings.circumstances import Circumstances, Table, circumstances, dialect_of
from a2a_tasks.bindings.event_stream import Envelope, send_stream
from a2a_tasks.bindings.faults import headers_of, told
from a2a_tasks.bindings.http import ClientGone, Request, Send, respond
from a2a_tasks.conf import conf
from a2a_tasks.protocol import jsonrpc
from a2a_tasks.protocol.catalogue import BY_NAME
from a2a_tasks.protocol.dialects import Dialect
from a2a_tasks.protocol.errors import (
    A2AError,
    ContentTypeNotSupported,
    Forbidden,
    MethodNotAllowed,
    Overloaded,
    TooLarge,
    Unauthenticated,
)

__all__ = ["serve_jsonrpc"]

#: Refusals of the transport keep their HTTP status; everything else is 200.
_TRANSPORT = (Unauthenticated, Forbidden, MethodNotAllowed, TooLarge, Overloaded)


class _WrongContentType(ContentTypeNotSupported):
    """The body is not called JSON: refused before it is read, with status 415."""


def _status(fault: A2AError) -> int:
    if isinstance(fault, _WrongContentType):
        return 415
    return fault.http_status if isinstance(fault, _TRANSPORT) else 200


def _check_transport(request: Request) -> None:
    if request.method != "POST":
        raise MethodNotAllowed(allow="POST")
    media_type = request.media_type
    if media_type and media_type != "application/json" and not media_type.endswith("+json"):
        raise _WrongContentType("Send application/json", mediaType=media_type)


async def serve_jsonrpc(request: Request, send: Send, agent: Agent, table: Table) -> None:
    """Answer one JSON-RPC request to an agent."""
    id_, dialect = jsonrpc.NULL, None
    try:
        _check_transport(request)
        caller = identify(request.headers)  # before a byte of the body is read
        call = jsonrpc.read_call(await request.body(), max_depth=int(conf.MAX_JSON_DEPTH))
        id_ = call.id
        dialect = dialect_of(request)
        found = circumstances(request, agent, dialect, caller)
        await _answer(request, send, table, call, found)
    except ClientGone:
        return
    except jsonrpc.BadCall as bad:
        await _refuse(send, bad.id, bad.cause, dialect)
    except Exception as fault:  # noqa: BLE001 - whatever it is, the client gets an answer
        await _refuse(send, id_, told(fault), dialect)


async def _refuse(send: Send, id_: bytes, fault: A2AError, dialect: Dialect | None) -> None:
    body = jsonrpc.error(id_, fault, dialect)
    await respond(send, _status(fault), body, headers_of(fault))


async def _answer(
    request: Request, send: Send, table: Table, call: jsonrpc.Call, found: Circumstances
) -> None:
    dialect = found.dialect
    asked = dialect.decode(call.method, call.params)
    result = await table[call.method](asked, found.call)
    if not BY_NAME[call.method].streams:
        body = jsonrpc.result(call.id, dialect.answer(call.method, result))
        await respond(send, 200, body, found.headers)
        return
    envelope = Envelope(
        jsonrpc.result_opening(call.id), b"}", lambda fault: jsonrpc.error(call.id, fault, dialect)
    )
    await send_stream(
        request, send, result, dialect=dialect, envelope=envelope, headers=found.headers
    )
