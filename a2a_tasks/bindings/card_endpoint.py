"""Agent cards over HTTP (A2A 1.0 §8): public, cacheable, validated by ETag, in the client's dialect.

A pinned mount has the card of its dialect, under either name. Elsewhere `agent-card.json` follows A2A-Version, and
`agent.json`, the older name, has a card that readers of 0.0, 0.1 and 0.2 understand.
"""

from __future__ import annotations

import email.utils
import functools
import hashlib
import time

from a2a_tasks.access.authentication import catalogue
from a2a_tasks.agents import Agent
from a2a_tasks.agents.registry import has_listed
from a2a_tasks.agents.security import is_listed
from a2a_tasks.bindings.door import RequestContext, load_dialect
from a2a_tasks.bindings.errors import headers_of, to_a2a_error
from a2a_tasks.bindings.http import JSON, Headers, Request, Send, respond
from a2a_tasks.conf import conf, of_settings
from a2a_tasks.operations.cards import make_card
from a2a_tasks.protocol import rest
from a2a_tasks.protocol.dialects import DIALECTS
from a2a_tasks.protocol.errors import MethodNotAllowed
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.versions import SUPPORTED
from a2a_tasks.signatures import ring
from a2a_tasks.signatures.ring import Seal

__all__ = ["etag_of", "is_unchanged", "make_cache_headers", "serve_card", "serve_catalogue"]

#: Cards change with a deployment, and a deployment starts a new process.
LAST_MODIFIED = email.utils.formatdate(time.time(), usegmt=True).encode()
MAX_AGE = b"max-age=60"
#: Map A2A-Version, and the values of A2A_CARD_DEFAULT, to the form of the card.
VERSIONS = {dialect.version: code for code, dialect in DIALECTS.items() if dialect.version}
DEFAULTS = {"hybrid": "hybrid", "1.0": "v10", "0.3": "v03"}


def _form(visit: RequestContext, name: str) -> str:
    """Return the form of the card for this request. Raises VersionNotSupported.

    Clients send their newest version with every request for a card, so a pinned mount gives its card to all of them.
    """
    version = visit.version(SUPPORTED)
    if visit.mount.dialect:
        return visit.mount.dialect
    if name == "agent.json":
        return "legacy"
    return VERSIONS[version] if version else DEFAULTS[conf.CARD_DEFAULT]


@of_settings
@functools.lru_cache(maxsize=1024)
def _card(agent: Agent, base_url: str, form: str, seal: Seal) -> tuple[bytes, bytes]:
    """Return the bytes of a card and their ETag, equal in every process with this seal: signatures are not random."""
    body = write(make_card(agent, base_url, form, seal))
    return body, etag_of(body)


def etag_of(body: bytes) -> bytes:
    """Return the ETag of a body, the same in every process."""
    return b'"' + hashlib.sha256(body).hexdigest()[:32].encode() + b'"'


def make_cache_headers(*vary: str, private: bool) -> Headers:
    """Return the cache headers: any cache may keep the answer or, if callers get different ones, only a private one."""
    names = [*vary, "Authorization", str(conf.API_KEY_HEADER)] if private else vary
    headers: Headers = [(b"cache-control", (b"private, " if private else b"public, ") + MAX_AGE)]
    return [*headers, (b"vary", ", ".join(names).encode())] if names else headers


def is_unchanged(request: Request, etag: bytes) -> bool:
    """Return whether the client has the body with this ETag (RFC 9110 §13.1.2)."""
    etags = [tag.strip().removeprefix("W/") for tag in request.header("if-none-match").split(",")]
    return etag.decode() in etags or etags == ["*"]


async def serve_card(visit: RequestContext, send: Send, name: str) -> None:
    """Send the public card of an agent, `name` as requested; 304 for a client that has it."""
    request = visit.request
    headers: Headers
    try:
        if request.method not in {"GET", "HEAD"}:
            raise MethodNotAllowed(allow="GET, HEAD")
        body, etag = _card(visit.agent, request.base_url, _form(visit, name), ring.seal())
    except Exception as fault:  # noqa: BLE001
        error = to_a2a_error(fault)
        refusal = load_dialect(visit.mount.dialect or "v10").rest.refusal(error)
        media_type = (b"content-type", refusal.media_type.encode() or JSON)
        headers = [*headers_of(error, visit.agent), media_type]
        await respond(send, refusal.status, refusal.body, headers)
        return
    headers = [
        (b"etag", etag),
        (b"last-modified", LAST_MODIFIED),
        *make_cache_headers("A2A-Version", "Accept", private=is_listed(visit.agent)),
    ]
    if is_unchanged(request, etag):
        await respond(send, 304, b"", headers)
    else:
        await respond(send, 200, body, headers)


async def serve_catalogue(request: Request, send: Send) -> None:
    """Send the cards of all agents that exist for the caller."""
    try:
        if request.method not in {"GET", "HEAD"}:
            raise MethodNotAllowed(allow="GET, HEAD")
        agents = await catalogue(request.credentials)
        base_url, seal = request.base_url, ring.seal()
        body = write({"agents": [make_card(agent, base_url, "v10", seal) for agent in agents]})
    except Exception as fault:  # noqa: BLE001
        error = to_a2a_error(fault)
        await respond(send, error.http_status, rest.error_body(error), headers_of(error))
        return
    await respond(send, 200, body, make_cache_headers(private=has_listed()))
