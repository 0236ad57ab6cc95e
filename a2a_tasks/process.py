"""This process among others: its listening socket, its name, and its exit.

This module imports nothing of the host, so that every package and every launcher may use it.
"""

from __future__ import annotations

import atexit
import logging
import os
import resource
import socket
import sys
import threading
from typing import NoReturn

__all__ = [
    "address_of",
    "exit_by",
    "leave",
    "leave_now",
    "listen",
    "name",
    "raise_descriptor_limit",
]

logger = logging.getLogger(__name__)

#: Connections the kernel queues until they are accepted.
BACKLOG = 2048
#: Descriptors that a serving process asks for. Some systems have a hard limit of 10^9, and some programs try to close
#: as many.
MAX_DESCRIPTORS = 65_536


def listen(host: str, port: int) -> socket.socket:
    """Bind and listen; OSError names the reason (in use, no such address). Port 0 picks a free one."""
    family, _, _, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE, proto=socket.IPPROTO_TCP
    )[0]
    return socket.create_server(address[:2], family=family, backlog=BACKLOG)


def raise_descriptor_limit() -> None:
    """Raise this process's limit of file descriptors to its hard limit, at most MAX_DESCRIPTORS.

    The usual soft limit of 1,024 is for programs that call select(). Each connection of a client takes one.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError) as fault:  # macOS allows fewer than its hard limit says
            logger.warning("the limit of %d file descriptors cannot be raised: %s", soft, fault)


#: The URL of the site that this process serves, without a path; empty = it serves none.
site = ""


def address_of(sock: socket.socket) -> tuple[str, int]:
    """Return the host and port a socket listens on."""
    host, port = sock.getsockname()[:2]
    return host, port


def name() -> str:
    """Return the name of this process for leases and operators: `host:pid`."""
    return f"{socket.gethostname()}:{os.getpid()}"


def exit_by(seconds: float) -> None:
    """End the process with code 0 after `seconds` from now, even if a thread still runs.

    Python joins its worker threads at exit, and a synchronous agent in one of them may sleep for an hour. Its run is in
    the database, and another process takes it over when the lease expires, so leaving it is safe.
    """
    timer = threading.Timer(seconds, _leave_late)
    timer.daemon = True
    timer.start()


def leave() -> NoReturn:
    """End the process with code 0, after its atexit functions, without finalizing the interpreter.

    Finalization takes seconds with this many modules, and native modules have been seen to crash in it.
    """
    atexit._run_exitfuncs()  # noqa: SLF001 - as sys.exit would: logging, metrics and traces are flushed
    leave_now(0)


def leave_now(code: int) -> NoReturn:
    """End the process with this code, without any further cleanup."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _leave_late() -> None:
    names = [
        t.name for t in threading.enumerate() if not t.daemon and t is not threading.main_thread()
    ]
    logger.warning("leaving with threads still running: %s", ", ".join(names) or "none")
    leave_now(0)
