"""Agent cards over HTTP (A2A 1.0 §8): public, cacheable, validated by ETag."""

from __future__ import annotations

import email.utils
import functools
import hashlib
import time

from a2a_tasks.agents import Agent
from a2a_tasks.agents.cards import card_of
from a2a_tasks.bindings.faults import headers_of, told
from a2a_tasks.bindings.http import Headers, Request, Send, respond
from a2a_tasks.protocol import rest
from a2a_tasks.protocol.errors import MethodNotAllowed
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.mounts import Mount

__all__ = ["serve_card", "serve_catalogue"]

#: Cards change with a deploy, and a deploy starts a process.
LAST_MODIFIED = email.utils.formatdate(time.time(), usegmt=True).encode()
MAX_AGE = b"public, max-age=60"


@functools.lru_cache(maxsize=256)
def _card(agent: Agent, base_url: str) -> tuple[bytes, bytes]:
    body = write(card_of(agent, base_url))
    return body, b'"' + hashlib.sha256(body).hexdigest()[:32].encode() + b'"'


def _unchanged(request: Request, etag: bytes) -> bool:
    known = [tag.strip().removeprefix("W/") for tag in request.header("if-none-match").split(",")]
    return etag.decode() in known or known == ["*"]


async def serve_card(request: Request, send: Send, agent: Agent, mount: Mount, name: str) -> None:
    """The public card of an agent; 304 for a client that has it."""
    try:
        if request.method not in {"GET", "HEAD"}:
            raise MethodNotAllowed(allow="GET, HEAD")
        body, etag = _card(agent, request.base_url)
    except Exception as fault:  # noqa: BLE001
        error = told(fault)
        await respond(send, error.http_status, rest.error_body(error), headers_of(error))
        return
    headers: Headers = [
        (b"etag", etag),
        (b"cache-control", MAX_AGE),
        (b"last-modified", LAST_MODIFIED),
        (b"vary", b"A2A-Version, Accept"),
    ]
    if _unchanged(request, etag):
        await respond(send, 304, b"", headers)
    else:
        await respond(send, 200, body, headers, head=request.method == "HEAD")


async def serve_catalogue(request: Request, send: Send, agents: list[Agent]) -> None:
    """The cards of all agents here."""
    try:
        if request.method not in {"GET", "HEAD"}:
            raise MethodNotAllowed(allow="GET, HEAD")
        body = write({"agents": [card_of(agent, request.base_url) for agent in agents]})
    except Exception as fault:  # noqa: BLE001
        error = told(fault)
        await respond(send, error.http_status, rest.error_body(error), headers_of(error))
        return
    headers: Headers = [(b"cache-control", MAX_AGE)]
    await respond(send, 200, body, headers, head=request.method == "HEAD")
