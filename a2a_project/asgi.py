"""The ASGI entry point: routes requests to the protocol, to health checks and metrics, or to Django."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "a2a_project.settings")

from channels.routing import ProtocolTypeRouter
from django.conf import settings
from django.core.asgi import get_asgi_application

django_application = get_asgi_application()  # sets Django up; the imports below need the apps

from a2a_project import health, host_names, metrics, startup  # noqa: E402
from a2a_project.drain import Drain  # noqa: E402
from a2a_project.operations import TABLE  # noqa: E402
from a2a_project.page_slots import PageSlots  # noqa: E402
from a2a_project.trusted_proxies import behind_proxies  # noqa: E402
from a2a_tasks.bindings.application import Application  # noqa: E402
from a2a_tasks.bindings.http import (  # noqa: E402
    ClientGone,
    Receive,
    Request,
    Scope,
    Send,
    respond,
)
from a2a_tasks.protocol import rest  # noqa: E402
from a2a_tasks.protocol.errors import InvalidRequest, TooLarge  # noqa: E402

PLAIN = [(b"content-type", b"text/plain")]
protocol = Application(TABLE)
page_slots = PageSlots(django_application)
startup.register()


async def http(scope: Scope, receive: Receive, send: Send) -> None:
    """Route a request to the application that serves its path."""
    if status := refusal(scope):
        await respond(send, status, b"", PLAIN)
        return
    path = scope["path"]
    if protocol.serves(path, scope["method"]):
        if host_names.is_ours(scope):
            await protocol(scope, receive, send)
        else:
            fault = InvalidRequest("This host name is not served here")
            await respond(send, fault.http_status, rest.error_body(fault))
    elif path in health.PATHS:
        await health.serve(scope, receive, send)
    elif path == metrics.PATH:
        await metrics.serve(scope, receive, send)
    else:
        await pages(scope, receive, send)


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


async def pages(scope: Scope, receive: Receive, send: Send) -> None:
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
    await page_slots(dict(scope), whole(body, receive), send)


def whole(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the body already read, and then the further messages."""
    left = [body]

    async def receive_rest() -> MutableMapping[str, Any]:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await receive()

    return receive_rest


async def websocket(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse a WebSocket handshake: no route supports WebSocket."""
    await receive()
    await send({"type": "websocket.close", "code": 1008})


by_type = ProtocolTypeRouter({"http": http, "websocket": websocket})
application = behind_proxies(Drain(by_type), settings.TRUSTED_PROXIES)
