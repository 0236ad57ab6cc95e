"""The caller's address behind proxies: X-Forwarded-For and -Proto are read from trusted proxies only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from a2a_tasks.access.credentials import PEER

__all__ = ["behind_proxies"]

_PROTOCOL = b"x-forwarded-proto"


def behind_proxies(application: Any, trusted: Sequence[str]) -> Any:
    """Return the application behind proxies with these addresses or networks; without any, the headers are data."""
    if not trusted:
        return application
    behind = ProxyHeadersMiddleware(application, trusted_hosts=list(trusted))

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        # A certificate is trusted only from the proxy itself, not from the client it forwards.
        scope[PEER] = scope.get("client")
        await behind(_with_first_protocol(scope), receive, send)

    return serve


def _with_first_protocol(scope: Any) -> Any:
    """Return the scope with one protocol: of the list of several proxies the first is the client's, and uvicorn reads none."""
    headers = scope.get("headers", [])
    said = b",".join(value for name, value in headers if name == _PROTOCOL)
    if b"," not in said:
        return scope
    others = [pair for pair in headers if pair[0] != _PROTOCOL]
    return {**scope, "headers": [*others, (_PROTOCOL, said.split(b",")[0].strip())]}
