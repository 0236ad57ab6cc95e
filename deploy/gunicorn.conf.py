"""gunicorn's configuration for several web processes, each with the options of `manage.py serve`.

gunicorn -c deploy/gunicorn.conf.py a2a_project.asgi:application

Variables: HOST, PORT, WEB_CONCURRENCY (number of processes), A2A_GRPC_PORT (every process serves gRPC there, too). SIGHUP
replaces the processes by new ones, with the code as it is then. The master holds both sockets, and imports none of the
host's modules.
"""

import datetime
import json
import logging
import math
import os
import select
import signal
import sys

from uvicorn_worker import UvicornWorker


class JsonFormatter(logging.Formatter):
    """The lines of the master, as the host writes them (a2a_project/json_line.py)."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one JSON object."""
        at = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
        line = {
            "ts": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


class Worker(UvicornWorker):
    """One web process."""

    # uvicorn compares times of the wall clock. After a clock was set back, it would not notify the master for as long.
    CONFIG_KWARGS = {**UvicornWorker.CONFIG_KWARGS, "timeout_notify": -math.inf}

    def run(self) -> None:
        """Serve until a signal."""
        from a2a_project.grpc_process import serve_in_background  # noqa: PLC0415 - not in the master
        from a2a_project.server import uvicorn_options  # noqa: PLC0415 - not in the master
        from a2a_tasks.telemetry.patient_stream import (  # noqa: PLC0415 - not in the master
            replace_standard_streams,
        )
        from a2a_tasks.telemetry.printed_lines import log_printed_lines  # noqa: PLC0415 - not in the master

        if IS_JSON:  # Django's logging is set up by now
            for name in ("uvicorn.error", *(["uvicorn.access"] if self.cfg.accesslog else [])):
                logging.getLogger(name).handlers = []
                logging.getLogger(name).propagate = True
        log_printed_lines()
        keep_all_lines()
        replace_standard_streams()
        for name, value in uvicorn_options().items():
            setattr(self.config, name, value)
        if GRPC_PORT:
            *self.sockets, grpc = self.sockets
            serve_in_background(grpc.sock)
        super().run()

    async def callback_notify(self) -> None:
        """Tell the master that the loop turns; end if the master has died."""
        await super().callback_notify()
        if os.getppid() != self.ppid:
            signal.raise_signal(signal.SIGTERM)


def is_taken(_: logging.LogRecord) -> bool:
    """Return whether a line can be written at once. The master loses it otherwise: nobody would replace dead processes."""
    return sys.__stderr__ is None or bool(select.select([], [sys.__stderr__], [], 0)[1])


def list_handlers() -> list[logging.Handler]:
    """Return the handlers of the master's log."""
    return [*logging.getLogger("gunicorn.error").handlers, *logging.getLogger().handlers]


def on_starting(server: object) -> None:
    """Let the log of the master wait for nobody. That of the processes is a2a_tasks/telemetry/patient_stream.py."""
    for handler in list_handlers():
        handler.addFilter(is_taken)


def keep_all_lines() -> None:
    """Undo `on_starting` in a process: by name, since the filter is that of this file before SIGHUP."""
    for handler in list_handlers():
        kept = (one for one in handler.filters if getattr(one, "__name__", "") != "is_taken")
        handler.filters = list(kept)


HOST = os.environ.get("HOST") or "127.0.0.1"
PORT = os.environ.get("PORT") or "8000"
#: As in the settings: 0 or empty = no gRPC.
GRPC_PORT = int(os.environ.get("A2A_GRPC_PORT") or 0)
bind = [
    f"[{HOST}]:{port}" if ":" in HOST else f"{HOST}:{port}"
    for port in (PORT, *filter(None, [GRPC_PORT]))
]
worker_class = Worker
IS_JSON = os.environ.get("A2A_LOG_FORMAT") == "json"
if IS_JSON:
    logconfig_dict = {
        "formatters": {"json": {"()": JsonFormatter}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "root": {"level": "INFO", "handlers": ["stderr"]},
        "loggers": {"gunicorn.error": {"propagate": True}, "gunicorn.access": {"propagate": True}},
    }
backlog = 2048
control_socket_disable = True  # it would be in the home directory
#: Seconds in which a process must show that its loop turns; then it is killed and replaced.
timeout = 30
#: Seconds from SIGTERM to SIGKILL.
graceful_timeout = int(float(os.environ.get("A2A_DRAIN_SECONDS") or 5)) + 5
