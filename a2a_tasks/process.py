"""This process among others: the socket it listens on, the word to whoever started it, and its last one.

Imports nothing of the host, so that every room and every launcher may use it.
"""

from __future__ import annotations

import atexit
import logging
import os
import socket
import sys
import threading
from contextlib import suppress
from typing import NoReturn

__all__ = [
    "READY_FD",
    "address_of",
    "exit_by",
    "inherited",
    "leave",
    "leave_now",
    "listen",
    "name",
    "tell_ready",
]

logger = logging.getLogger(__name__)

#: Connections the kernel holds until they are accepted. daphne's 50 made 1,000 connects take 16 s instead of 2.
BACKLOG = 2048
#: The variable with the number of the descriptor to which a process writes a line once it can work.
READY_FD = "READY_FD"


def listen(host: str, port: int) -> socket.socket:
    """Bind and listen; OSError names the reason (in use, not ours, no such address). Port 0 picks a free one."""
    family, _, _, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE, proto=socket.IPPROTO_TCP
    )[0]
    sock = socket.create_server(address[:2], family=family, backlog=BACKLOG)
    sock.setblocking(False)  # Twisted accepts until it would block
    return sock


def inherited(descriptor: int) -> socket.socket:
    """The listening socket that whoever started this process opened for it. OSError when there is none."""
    sock = socket.socket(fileno=descriptor)
    sock.set_inheritable(False)  # not for the children of agents
    sock.setblocking(False)
    return sock


#: The URL of the site that this process serves, without a path; empty = it serves none.
site = ""


def address_of(sock: socket.socket) -> tuple[str, int]:
    """The host and port a socket listens on."""
    host, port = sock.getsockname()[:2]
    return host, port


def name() -> str:
    """What this process is called by leases and operators: `host:pid`."""
    return f"{socket.gethostname()}:{os.getpid()}"


def tell_ready() -> None:
    """Tell whoever started this process that it can work: once, and only if they asked."""
    number = os.environ.pop(READY_FD, "")
    if number.isdecimal():
        with suppress(OSError):  # nobody listens any more
            os.write(int(number), b"ready\n")
        with suppress(OSError):
            os.close(int(number))


def exit_by(seconds: float) -> None:
    """End the process with code 0 after `seconds` from now, even if a thread still runs.

    Python joins its worker threads at exit, and a synchronous agent in one of them may sleep for an hour. Its run
    is in the database and is taken over by lease, so leaving it is safe; hanging until SIGKILL is not better.
    """
    timer = threading.Timer(seconds, _leave_late)
    timer.daemon = True
    timer.start()


def leave() -> NoReturn:
    """End the process with code 0, after its atexit functions, without taking the interpreter apart.

    That takes seconds with this many modules, and the native ones among them have been seen to crash in it.
    """
    atexit._run_exitfuncs()  # noqa: SLF001 - what sys.exit would run: logging, metrics and traces are flushed
    leave_now(0)


def leave_now(code: int) -> NoReturn:
    """End the process with this code, and nothing else."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _leave_late() -> None:
    names = [
        t.name for t in threading.enumerate() if not t.daemon and t is not threading.main_thread()
    ]
    logger.warning("leaving with threads still running: %s", ", ".join(names) or "none")
    leave_now(0)
