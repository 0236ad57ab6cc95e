"""What the two launchers share: the listening socket, the signals, the trusted proxies and the last word.

Order of an end, the same on both servers (docs/decisions/0020):

    SIGTERM or SIGINT -> the socket closes -> lifetime.begin_drain() -> open requests end, at most drain_seconds
    -> what still runs is cancelled -> lifetime.stop() -> exit code 0, at the latest GRACE_SECONDS after the drain
    a second signal   -> gone at once
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import select
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from a2a_tasks import lifetime
from a2a_tasks.access.credentials import PEER
from a2a_tasks.process import BACKLOG, address_of, exit_by, inherited, leave, leave_now, listen

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable

__all__ = [
    "BACKLOG",
    "Serving",
    "address_of",
    "answering",
    "behind_proxies",
    "end",
    "exit_by",
    "leave",
    "listen",
    "on_signals",
    "socket_for",
    "unread",
]

logger = logging.getLogger(__name__)

ASGIApplication = Any  # django-stubs, channels and uvicorn each have their own type for it

#: Seconds for which connections stay open at the end though no request is under way on them. A client may be sending
#: its next one at this moment; it is answered, and told that the connection closes, instead of finding it closed.
LINGER_SECONDS = 1.0
#: Seconds between looks whether what was sent has been read.
LOOK_SECONDS = 0.05
#: Seconds that cancelled requests get to clean up.
CLOSE_SECONDS = 0.5
#: Seconds that stop callbacks get beyond what is left of the drain.
STOP_SECONDS = 1.0
#: Seconds after the drain at which the process is gone whatever still runs in it: threads cannot be cancelled.
GRACE_SECONDS = 1.8
#: What a request gets that the process cannot answer any more.
TURNED_AWAY = {
    "type": "http.response.start",
    "status": 503,
    "headers": [(b"retry-after", b"1"), (b"content-length", b"0"), (b"connection", b"close")],
}
SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class Serving:
    """How to serve. The application and the address are given beside it."""

    #: Seconds open requests get to end after SIGTERM.
    drain_seconds: float = 5.0
    #: One line in the log a request.
    access_log: bool = False
    #: Addresses and networks whose X-Forwarded-For and -Proto are believed; none: the headers are data.
    trusted_proxies: tuple[str, ...] = ()
    #: Seconds a request gets to come, and bytes of it that buy it one more; 0 seconds = it may take for ever.
    request_seconds: float = 20.0
    request_bytes_per_second: int = 4096
    #: Largest body, where the server has to have all of it before the application hears of it (daphne).
    max_body_bytes: int = 4 * 1024 * 1024
    #: Called with host and port once connections are accepted (port 0 has become a real one).
    on_listening: Callable[[str, int], None] | None = None
    #: A listening socket inherited from whoever started the process; host and port are not used then.
    descriptor: int | None = None


def socket_for(host: str, port: int, serving: Serving) -> socket.socket:
    """The socket to accept on: the one inherited, or one of our own. OSError when it cannot be had."""
    if serving.descriptor is not None:
        return inherited(serving.descriptor)
    return listen(host, port)


def unread(sock: socket.socket) -> bool:
    """Has the client sent what was not read yet? Closing then would be a reset for it instead of an answer."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))


def answering(application: ASGIApplication) -> ASGIApplication:
    """Have a request that outlasts the drain answered with 503, if nothing of its answer was sent, before it is cut."""

    async def answered(scope: Any, receive: Any, send: Any) -> None:
        try:
            await application(scope, receive, send)
        except asyncio.CancelledError:
            if lifetime.draining() and scope["type"] == "http":
                with contextlib.suppress(Exception):  # its answer has begun
                    await send(TURNED_AWAY)
                    await send({"type": "http.response.body"})
            raise

    return answered


def behind_proxies(application: ASGIApplication, trusted: Iterable[str]) -> ASGIApplication:
    """Take the caller's address and scheme from X-Forwarded-*, but only as written by a trusted proxy.

    daphne's own reading takes the leftmost address, which any client may forge, so both servers use this one.
    """
    hosts = list(trusted)
    if not hosts:
        return application
    from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware  # noqa: PLC0415 - only when asked for

    behind = ProxyHeadersMiddleware(application, trusted_hosts=hosts)

    async def remembering(scope: Any, receive: Any, send: Any) -> None:
        # A certificate is believed from the proxy, not from whom it speaks for.
        scope[PEER] = scope.get("client")
        await behind(scope, receive, send)

    return remembering


def on_signals(loop: asyncio.AbstractEventLoop, first: Callable[[], None]) -> None:
    """Call `first` in the loop at the first SIGTERM or SIGINT; the second one ends the process at once."""
    told = False

    def handle(signum: int) -> None:
        nonlocal told
        if told:
            leave_now(128 + signum)
        told = True
        first()

    for signum in SIGNALS:
        loop.add_signal_handler(signum, handle, signum)


async def end(requests: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel what the drain did not end, then stop the helpers, which have what is left of the drain.

    Over at the latest CLOSE_SECONDS + STOP_SECONDS after the drain.
    """
    left = [task for task in requests if not task.done()]
    if left:
        logger.warning("%d request(s) did not end within the drain and are cancelled", len(left))
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=CLOSE_SECONDS)
    try:
        await asyncio.wait_for(lifetime.stop(), lifetime.drain_left() + STOP_SECONDS)
    except TimeoutError:
        logger.warning("the stop callbacks took longer than the drain; leaving without them")
