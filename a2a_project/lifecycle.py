"""What the two launchers share: the listening socket, the signals, the trusted proxies and the last word.

Order of an end, the same on both servers (docs/decisions/0020):

    SIGTERM or SIGINT -> the socket closes -> lifetime.begin_drain() -> open requests end, at most drain_seconds
    -> what still runs is cancelled -> lifetime.stop() -> exit code 0, at the latest GRACE_SECONDS after the drain
    a second signal   -> gone at once
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import signal
import socket
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from a2a_tasks import lifetime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = [
    "Serving",
    "address_of",
    "behind_proxies",
    "end",
    "exit_by",
    "leave",
    "listen",
    "on_signals",
]

logger = logging.getLogger(__name__)

ASGIApplication = Any  # django-stubs, channels and uvicorn each have their own type for it

#: Connections the kernel holds until they are accepted. daphne's 50 made 1,000 connects take 16 s instead of 2.
BACKLOG = 2048
#: Seconds that cancelled requests get to clean up.
CLOSE_SECONDS = 0.5
#: Seconds that stop callbacks get beyond what is left of the drain.
STOP_SECONDS = 1.0
#: Seconds after the drain at which the process is gone whatever still runs in it: threads cannot be cancelled.
GRACE_SECONDS = 1.8
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
    #: Called with host and port once connections are accepted (port 0 has become a real one).
    on_listening: Callable[[str, int], None] | None = None


def listen(host: str, port: int) -> socket.socket:
    """Bind and listen; OSError names the reason (in use, not ours, no such address). Port 0 picks a free one."""
    family, _, _, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE, proto=socket.IPPROTO_TCP
    )[0]
    sock = socket.create_server(address[:2], family=family, backlog=BACKLOG)
    sock.setblocking(False)  # Twisted accepts until it would block
    return sock


def address_of(sock: socket.socket) -> tuple[str, int]:
    """The host and port a socket listens on."""
    host, port = sock.getsockname()[:2]
    return host, port


def behind_proxies(application: ASGIApplication, trusted: Iterable[str]) -> ASGIApplication:
    """Take the caller's address and scheme from X-Forwarded-*, but only as written by a trusted proxy.

    daphne's own reading takes the leftmost address, which any client may forge, so both servers use this one.
    """
    hosts = list(trusted)
    if not hosts:
        return application
    from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware  # noqa: PLC0415 - only when asked for

    return ProxyHeadersMiddleware(application, trusted_hosts=hosts)


def on_signals(loop: asyncio.AbstractEventLoop, first: Callable[[], None]) -> None:
    """Call `first` in the loop at the first SIGTERM or SIGINT; the second one ends the process at once."""
    told = False

    def handle(signum: int) -> None:
        nonlocal told
        if told:
            _leave(128 + signum)
        told = True
        first()

    for signum in SIGNALS:
        loop.add_signal_handler(signum, handle, signum)


def exit_by(seconds: float) -> None:
    """End the process with code 0 after `seconds` from now, even if a thread still runs.

    Python joins its worker threads at exit, and a synchronous agent in one of them may sleep for an hour. Its run
    is in the database and is taken over by lease, so leaving it is safe; hanging until SIGKILL is not better.
    """
    timer = threading.Timer(seconds, _leave_late)
    timer.daemon = True
    timer.start()


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


def leave() -> NoReturn:
    """End the process with code 0, after its atexit functions, without taking the interpreter apart.

    That takes seconds with this many modules, and the native ones among them have been seen to crash in it.
    """
    atexit._run_exitfuncs()  # noqa: SLF001 - what sys.exit would run: logging, metrics and traces are flushed
    _leave(0)


def _leave_late() -> None:
    names = [
        t.name for t in threading.enumerate() if not t.daemon and t is not threading.main_thread()
    ]
    logger.warning("leaving with threads still running: %s", ", ".join(names) or "none")
    _leave(0)


def _leave(code: int) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
