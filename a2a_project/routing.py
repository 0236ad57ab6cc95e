"""Requests below A2A_PREFIX go to the protocol, to health checks and metrics, or to the host's pages.

All others go to the application of the project that the host is part of, untouched.
"""

from __future__ import annotations

import re
from typing import Any

from channels.routing import ProtocolTypeRouter

from a2a_project import health, metrics, startup
from a2a_project.doors import find_door, serve_door
from a2a_project.drain import Drain
from a2a_project.operations import TABLE
from a2a_project.page_slots import PageSlots
from a2a_project.trusted_proxies import behind_proxies
from a2a_tasks.bindings.application import Application
from a2a_tasks.bindings.errors import headers_of
from a2a_tasks.bindings.http import (
    ClientGone,
    Receive,
    Request,
    Scope,
    Send,
    give_again,
    page_body_quota,
    respond,
)
from a2a_tasks.conf import conf, is_ours, own_path, project
from a2a_tasks.protocol.errors import Overloaded, TooLarge

__all__ = ["Routes", "make_application"]

PLAIN = [(b"content-type", b"text/plain")]
#: Headers whose readers in Python and Django need the square of their length, and the bytes they may have.
MEDIA, MEDIA_BYTES = frozenset({b"accept", b"content-type"}), 2048
#: Addresses of the protocol that are pages for browsers: the list of agents, and each agent.
PAGES = re.compile(r"/agents(/[\w-]*)?/?")
READS = frozenset({"GET", "HEAD"})


def make_application(routes: Routes) -> Any:
    """Return the ASGI application of a process that serves HTTP. Call it once."""
    startup.register()
    return behind_proxies(Drain(routes.by_type), project.TRUSTED_PROXIES)


class Routes:
    """The host, and what is beside it."""

    def __init__(self, django_application: Any) -> None:
        self.django = django_application
        self.page_slots = PageSlots(django_application)
        self.protocol = Application(TABLE)
        self.by_type = ProtocolTypeRouter({"http": self, "websocket": self.websocket})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Route a request to the application that serves its path."""
        path = own_path(scope["path"])
        if path is None:
            await self.django(scope, receive, send)
            return
        if status := refusal(scope):
            # The rest of the connection may be of this request or of another one, so it is not read.
            await respond(send, status, b"", [*PLAIN, (b"connection", b"close")])
            return
        if scope["method"] in READS and PAGES.fullmatch(path) and is_from_browser(scope):
            await self.pages(scope, receive, send)
        elif conf.DOORS and (door := find_door(path)):
            await serve_door(door, scope, receive, send)
        elif self.protocol.serves(path, scope["method"]):
            await self.protocol(scope, receive, send)
        elif path in health.PATHS:
            await health.serve(path, send)
        elif path == metrics.PATH:
            await metrics.serve(scope, receive, send)
        else:
            await self.pages(scope, receive, send)

    async def pages(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a page by Django, after reading its body.

        Django would spool a body of any length before its own check, so one that is too large is refused here.
        """
        if await self.page_slots.refuses(send):
            return
        try:
            body = await Request(scope, receive).body(page_body_quota())
        except (TooLarge, Overloaded) as fault:
            await respond(send, fault.http_status, b"", [*PLAIN, *headers_of(fault)])
            return
        except ClientGone:
            return
        await self.page_slots(for_pages(scope), give_again(body, receive), send)

    async def websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a WebSocket handshake: no route of the host supports WebSocket."""
        if not is_ours(scope["path"]):
            await self.django(scope, receive, send)
            return
        await receive()
        await send({"type": "websocket.close", "code": 1008})


def is_from_browser(scope: Scope) -> bool:
    """Return whether the request names HTML among the types that it accepts, as no client of the protocol does."""
    accepts = (value for name, value in scope["headers"] if name == b"accept")
    return any(b"text/html" in one for one in accepts)


def refusal(scope: Scope) -> int:
    """Return the status for a request whose head is ambiguous although servers pass it on; 0 = serve it.

    Two Host lines, or no version: 400 (RFC 9112 §3.2, §3); an unsupported transfer coding: 501 (§6.1); a list of media
    types, or one with parameters, that is longer than any program needs: 431.
    """
    names = 0
    for name, value in scope["headers"]:
        if name == b"host":
            names += 1
        elif name == b"transfer-encoding" and value.strip().lower() != b"chunked":
            return 501
        elif len(value) > MEDIA_BYTES and name in MEDIA:
            return 431
    return 400 if names > 1 or scope.get("http_version") == "0.9" else 0


def for_pages(scope: Scope) -> Scope:
    """Return the request as Django sees it: without cookies that have a backslash.

    No cookie may have one (RFC 6265 §4.1.1), the host's own have none, and the `http.cookies` of some versions of Python
    need the square of their number (CVE-2024-7592).
    """
    headers = [
        (name, _sound_cookies(value) if name == b"cookie" else value)
        for name, value in scope["headers"]
    ]
    return {**scope, "headers": headers}


def _sound_cookies(value: bytes) -> bytes:
    return b";".join(pair for pair in value.split(b";") if b"\\" not in pair)
