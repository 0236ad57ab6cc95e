"""The HTTP+JSON binding (A2A 1.0 §11): routes of the catalogue, google.rpc.Status errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from a2a_tasks.access.callers import identify
from a2a_tasks.agents import Agent
from a2a_tasks.bindings.circumstances import Table, circumstances, dialect_of
from a2a_tasks.bindings.event_stream import Envelope, send_stream
from a2a_tasks.bindings.faults import headers_of, told
from a2a_tasks.bindings.http import A2A_JSON, JSON, ClientGone, Request, Send, respond
from a2a_tasks.conf import conf
from a2a_tasks.protocol import rest
from a2a_tasks.protocol.errors import ContentTypeNotSupported, InvalidParams
from a2a_tasks.protocol.jsontext import read

__all__ = ["serve_rest"]


def _media_type(request: Request) -> bytes:
    """`application/a2a+json` for those who name it, `application/json` for the others."""
    named = request.header("content-type") + request.header("accept")
    return A2A_JSON if A2A_JSON.decode() in named.lower() else JSON


async def _params(request: Request, match: rest.Match) -> dict[str, Any]:
    """What path, query and body say together. Raises InvalidParams, ParseError, ContentTypeNotSupported."""
    if request.method in {"GET", "DELETE"}:
        return rest.merge(match.params, rest.query_params(request.query))
    body = await request.body()
    if not body.strip():
        return dict(match.params)
    media_type = request.media_type
    if media_type and media_type != "application/json" and not media_type.endswith("+json"):
        raise ContentTypeNotSupported("Send application/json", mediaType=media_type)
    document = read(body, max_depth=int(conf.MAX_JSON_DEPTH))
    if document is None:
        return dict(match.params)
    if not isinstance(document, Mapping):
        raise InvalidParams("The body must be a JSON object")
    return rest.merge(match.params, document)


async def serve_rest(
    request: Request, send: Send, agent: Agent, table: Table, segments: Sequence[str]
) -> None:
    """Answer one HTTP+JSON request at a path below an agent."""
    content_type = (b"content-type", _media_type(request))
    try:
        await _answer(request, send, agent, table, segments)
    except ClientGone:
        return
    except Exception as fault:  # noqa: BLE001 - whatever it is, the client gets an answer
        error = told(fault)
        headers = [*headers_of(error), content_type]
        await respond(send, error.http_status, rest.error_body(error), headers)


async def _answer(
    request: Request, send: Send, agent: Agent, table: Table, segments: Sequence[str]
) -> None:
    caller = identify(request.headers)  # before a byte of the body is read
    dialect = dialect_of(request)
    match = rest.match(request.method, segments)
    name = match.operation.name
    asked = dialect.decode(name, await _params(request, match))
    found = circumstances(request, agent, dialect, caller)
    result = await table[name](asked, found.call)
    if match.operation.streams:
        envelope = Envelope(b"", b"", rest.error_body)
        await send_stream(
            request, send, result, dialect=dialect, envelope=envelope, headers=found.headers
        )
        return
    headers = [*found.headers, (b"content-type", _media_type(request))]
    await respond(send, 200, dialect.answer(name, result), headers)
