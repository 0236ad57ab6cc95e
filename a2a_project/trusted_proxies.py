"""The caller's address behind proxies: X-Forwarded-For and -Proto count only as a trusted proxy wrote them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from a2a_tasks.access.credentials import PEER

__all__ = ["behind_proxies"]


def behind_proxies(application: Any, trusted: Sequence[str]) -> Any:
    """Return the application behind proxies with these addresses or networks; without any, the headers are data."""
    if not trusted:
        return application
    behind = ProxyHeadersMiddleware(application, trusted_hosts=list(trusted))

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        # A certificate is trusted only from the proxy itself, not from the client it forwards.
        scope[PEER] = scope.get("client")
        await behind(scope, receive, send)

    return serve
