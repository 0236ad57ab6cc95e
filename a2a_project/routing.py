"""Requests below A2A_PREFIX go to the protocol, to health checks and metrics, or to the host's pages.

All others go to the application of the project that the host is part of, untouched.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from channels.routing import ProtocolTypeRouter

from a2a_project import health, host_names, metrics, startup
from a2a_project.drain import Drain
from a2a_project.operations import TABLE
from a2a_project.page_slots import PageSlots
from a2a_project.trusted_proxies import behind_proxies
from a2a_tasks.bindings.application import Application
from a2a_tasks.bindings.http import ClientGone, Receive, Request, Scope, Send, respond
from a2a_tasks.conf import is_ours, path_below, project
from a2a_tasks.protocol import rest
from a2a_tasks.protocol.errors import InvalidRequest, TooLarge

__all__ = ["Routes", "make_application"]

PLAIN = [(b"content-type", b"text/plain")]


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
        if not is_ours(scope["path"]):
            await self.django(scope, receive, send)
            return
        if status := refusal(scope):
            await respond(send, status, b"", PLAIN)
            return
        path = path_below(scope["path"])
        if self.protocol.serves(path, scope["method"]):
            if host_names.is_ours(scope):
                await self.protocol(scope, receive, send)
            else:
                fault = InvalidRequest("This host name is not served here")
                await respond(send, fault.http_status, rest.error_body(fault))
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
        try:
            body = await Request(scope, receive).body()
        except TooLarge as fault:
            await respond(send, fault.http_status, b"", PLAIN)
            return
        except ClientGone:
            return
        await self.page_slots(dict(scope), whole(body, receive), send)

    async def websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a WebSocket handshake: no route of the host supports WebSocket."""
        if not is_ours(scope["path"]):
            await self.django(scope, receive, send)
            return
        await receive()
        await send({"type": "websocket.close", "code": 1008})


def refusal(scope: Scope) -> int:
    """Return the status for a request whose head is ambiguous although servers pass it on; 0 = serve it.

    Two Host lines, or no version: 400 (RFC 9112 §3.2, §3); an unsupported transfer coding: 501 (§6.1).
    """
    names = 0
    for name, value in scope["headers"]:
        if name == b"host":
            names += 1
        elif name == b"transfer-encoding" and value.strip().lower() != b"chunked":
            return 501
    return 400 if names > 1 or scope.get("http_version") == "0.9" else 0


def whole(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the body already read, and then the further messages."""
    left = [body]

    async def receive_rest() -> MutableMapping[str, Any]:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await receive()

    return receive_rest
