"""The routes of OpenAI's API: /v1/models, /v1/models/<id>, /v1/chat/completions. An agent is a model."""

from __future__ import annotations

from typing import Any

from a2a_doors.openai.completion import complete, say
from a2a_doors.openai.errors import of_error
from a2a_doors.openai.request import Chat, read_chat
from a2a_doors.visit import admit_bearer_keys, enter, read_document
from a2a_tasks.access.authentication import catalogue, recognize
from a2a_tasks.agents import Agent
from a2a_tasks.bindings.http import ClientGone, Request, Send, respond, without_body
from a2a_tasks.conf import conf
from a2a_tasks.operations.handler import OperationTable
from a2a_tasks.protocol.binding import Binding
from a2a_tasks.protocol.errors import MethodNotAllowed, MethodNotFound
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.telemetry.observed_request import ObservedRequest

__all__ = ["serve"]

OWNER = "a2a-host"


async def serve(request: Request, send: Send, table: OperationTable) -> None:
    """Answer a request by OpenAI's API."""
    admit_bearer_keys(request)
    if request.method == "HEAD":
        send = without_body(send)
    with ObservedRequest().by(Binding.OPENAI, request.headers) as observed:
        try:
            await _serve(request, send, table, observed)
        except ClientGone as gone:
            observed.note_fault(gone)
        except Exception as fault:  # noqa: BLE001 - after any failure the client gets an answer
            refusal = of_error(fault)
            observed.note_fault(fault)
            await respond(send, refusal.status, refusal.body, refusal.headers)


async def _serve(
    request: Request, send: Send, table: OperationTable, observed: ObservedRequest
) -> None:
    _, kind, *named = request.segments
    allowed = ("POST",) if kind == "chat" else ("GET", "HEAD")
    if request.method not in allowed:
        raise MethodNotAllowed(allow=", ".join(allowed))
    await recognize(request.credentials)
    if kind == "models":
        await _send_models(request, send, named)
        return
    chat = read_chat(await read_document(request))
    try:
        visit = await enter(request, chat.model, Binding.OPENAI, table, observed)
    except MethodNotFound:
        raise _no_model(chat.model) from None
    if _is_ignored(chat):
        await say(send, chat, "")
        return
    await complete(visit, chat, send)


def _no_model(name: str) -> MethodNotFound:
    """Return the error for an agent that does not exist for the caller."""
    return MethodNotFound(f"The model {name[:64]!r} does not exist", model=name[:64])


def _is_ignored(chat: Chat) -> bool:
    beginnings = filter(None, map(str.strip, str(conf.OPENAI_IGNORE).split(",")))
    return chat.messages[-1].text.startswith(tuple(beginnings))


async def _send_models(request: Request, send: Send, named: list[str]) -> None:
    """Send the agents that exist for the caller, or one of them."""
    models = list(map(_describe, await catalogue(request.credentials)))
    answer: Any = {"object": "list", "data": models}
    if named:
        answer = next((model for model in models if model["id"] == named[0]), None)
    if answer is None:
        raise _no_model(named[0])
    await respond(send, 200, write(answer), [(b"cache-control", b"private, no-cache")])


def _describe(agent: Agent) -> dict[str, Any]:
    return {
        "id": agent.slug,
        "object": "model",
        "created": 0,
        "owned_by": OWNER,
        "name": agent.name,
    }
