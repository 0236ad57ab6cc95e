"""The web server: uvicorn by its public API, in one process. deploy/gunicorn.conf.py runs several with the same options."""

from __future__ import annotations

import signal
import socket
from typing import Any, NoReturn

import uvicorn

from a2a_project.drain import SIGNALS
from a2a_project.http_protocol import HttpProtocol
from a2a_tasks.conf import conf
from a2a_tasks.process import BACKLOG, leave

__all__ = ["serve", "uvicorn_options"]


def uvicorn_options() -> dict[str, Any]:
    """Return the options of uvicorn.Config that every serving process has."""
    return {
        "loop": "uvloop",
        "http": HttpProtocol,
        "ws": "none",
        "interface": "asgi3",
        "lifespan": "on",
        "backlog": BACKLOG,
        "proxy_headers": False,  # see trusted_proxies
        "server_header": False,
        # Longer than proxies keep idle connections (nginx: 60): a request is lost if the server closes first.
        "timeout_keep_alive": 75,
        "timeout_graceful_shutdown": conf.DRAIN_SECONDS,
    }


def serve(application: Any, sock: socket.socket, *, access_log: bool = False) -> NoReturn:
    """Serve on a listening socket until a signal, drain, and end the process with code 0."""
    for signum in SIGNALS:
        signal.signal(signum, lambda *_: leave())  # uvicorn raises the signal again at its end
    config = uvicorn.Config(
        application,
        **uvicorn_options(),
        log_config=None,  # Django's logging stays
        log_level="info" if access_log else "warning",
        access_log=access_log,
    )
    uvicorn.Server(config).run(sockets=[sock])
    leave()
