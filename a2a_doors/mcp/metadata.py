"""Metadata of a protected resource (RFC 9728): by them clients find the sign-in of the company."""

from __future__ import annotations

from urllib.parse import unquote

from a2a_tasks.access.authentication import find_agent
from a2a_tasks.bindings.http import Headers, Request, Send, respond
from a2a_tasks.conf import conf
from a2a_tasks.protocol import rest
from a2a_tasks.protocol.errors import A2AError, InvalidRequest
from a2a_tasks.protocol.jsontext import write

__all__ = ["PLACE", "point_to", "serve_metadata"]

PLACE = "/.well-known/oauth-protected-resource"


def point_to(headers: Headers, request: Request) -> Headers:
    """Return the headers of a refusal, with the address of the metadata in the challenge for bearer tokens."""
    try:
        url = f"{request.base_url}{PLACE}/{'/'.join(request.segments)}".encode()
    except InvalidRequest:  # the metadata is not served by this host name, either
        return headers
    more = b', resource_metadata="' + url + b'"'
    return [
        (name, value + more if value.startswith(b"Bearer ") else value) for name, value in headers
    ]


async def serve_metadata(request: Request, send: Send) -> None:
    """Send the metadata of the address behind PLACE; 404 where no issuer of tokens is set.

    An agent that does not exist for the caller has metadata, too: otherwise they would tell which agents there are. By a
    host name that is not served there are none.
    """
    about = list(map(unquote, request.segments[2:]))
    found = about in ([], ["mcp"]) or (about[::2] == ["agents", "mcp"] and len(about) == 3)  # noqa: PLR2004
    if not (conf.JWT_ISSUER and found) or request.method not in {"GET", "HEAD"}:
        await respond(send, 404, b"")
        return
    try:
        base_url = request.base_url
    except InvalidRequest as fault:
        await respond(send, fault.http_status, rest.error_body(fault))
        return
    members = {
        "resource": "/".join([base_url, *about]),
        "authorization_servers": [str(conf.JWT_ISSUER)],
        "bearer_methods_supported": ["header"],
    }
    try:
        agent = await find_agent(request.credentials, about[1]) if len(about) > 1 else None
    except A2AError:
        agent = None
    if agent is not None and agent.scopes:
        members["scopes_supported"] = list(agent.scopes)
    await respond(send, 200, write(members))
