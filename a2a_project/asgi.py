"""The ASGI entry point: the protocol beside Django, health beside both."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "a2a_project.settings")

from channels.routing import ProtocolTypeRouter
from django.core.asgi import get_asgi_application

django_application = get_asgi_application()  # sets Django up; what follows needs the apps

from a2a_project import health, host_names, metrics, startup  # noqa: E402
from a2a_project.operations import TABLE  # noqa: E402
from a2a_project.page_slots import PageSlots  # noqa: E402
from a2a_tasks import lifetime  # noqa: E402
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

protocol = Application(TABLE)
page_slots = PageSlots(django_application)
startup.register()


async def http(scope: Scope, receive: Receive, send: Send) -> None:
    """Send a request to who serves its path."""
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


async def pages(scope: Scope, receive: Receive, send: Send) -> None:
    """Django's part. It would spool a body of any length before it looks at it, so one that is too large is refused."""
    try:
        body = await Request(scope, receive).body()
    except TooLarge as fault:
        await respond(send, fault.http_status, b"", [(b"content-type", b"text/plain")])
        return
    except ClientGone:
        return
    await page_slots(dict(scope), whole(body, receive), send)


def whole(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body that was read, and then what comes."""
    left = [body]

    async def given() -> MutableMapping[str, Any]:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await receive()

    return given


async def lifespan(scope: Scope, receive: Receive, send: Send) -> None:
    """Servers with a lifespan (uvicorn on its own) start and stop the process's helpers by it."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await lifetime.start()
            await send({"type": "lifespan.startup.complete"})
        else:
            lifetime.begin_drain()
            await lifetime.stop()
            await send({"type": "lifespan.shutdown.complete"})
            return


async def websocket(scope: Scope, receive: Receive, send: Send) -> None:
    """Nothing here speaks WebSocket: refuse the handshake."""
    await receive()
    await send({"type": "websocket.close", "code": 1008})


application = ProtocolTypeRouter({"http": http, "lifespan": lifespan, "websocket": websocket})
