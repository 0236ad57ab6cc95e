"""gunicorn's configuration for several web processes, each with the options of `manage.py serve`.

gunicorn -c deploy/gunicorn.conf.py a2a_project.asgi:application

Variables: HOST, PORT, WEB_CONCURRENCY (number of processes), A2A_GRPC_PORT (every process serves gRPC there, too). SIGHUP
replaces the processes by new ones, with the code as it is then. The master holds both sockets, and imports none of the
host's modules.
"""

import os
import signal

from uvicorn_worker import UvicornWorker


class Worker(UvicornWorker):
    """One web process."""

    def run(self) -> None:
        """Serve until a signal."""
        from a2a_project.grpc_server import serve_in_background  # noqa: PLC0415 - not in the master
        from a2a_project.server import uvicorn_options  # noqa: PLC0415 - not in the master

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


HOST = os.environ.get("HOST") or "127.0.0.1"
PORT = os.environ.get("PORT") or "8000"
#: As in the settings: 0 or empty = no gRPC.
GRPC_PORT = int(os.environ.get("A2A_GRPC_PORT") or 0)
bind = [
    f"[{HOST}]:{port}" if ":" in HOST else f"{HOST}:{port}"
    for port in (PORT, *filter(None, [GRPC_PORT]))
]
worker_class = Worker
backlog = 2048
control_socket_disable = True  # it would be in the home directory
#: Seconds in which a process must show that its loop turns; then it is killed and replaced.
timeout = 30
#: Seconds from SIGTERM to SIGKILL.
graceful_timeout = int(float(os.environ.get("A2A_DRAIN_SECONDS") or 5)) + 5
