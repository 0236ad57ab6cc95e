"""`manage.py serve_grpc`: one process that serves gRPC, ended in good order by SIGTERM or Ctrl-C."""

from __future__ import annotations

import gc
import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.module_loading import import_string

from a2a_tasks.conf import conf
from a2a_tasks.management.commands.serve import Address, refusal, refuse_without_tables

if TYPE_CHECKING:
    from argparse import ArgumentParser

#: By name, since this app stands below the project that holds the launcher.
LAUNCHER = "a2a_project.grpc_server"
#: What gRPC servers are commonly found at.
USUAL_PORT = 50051
MISSING = "gRPC needs packages of its own: pip install -r requirements-grpc.txt"


class Command(BaseCommand):
    """Serves gRPC in one process."""

    help = "Serve gRPC in this process until SIGTERM or Ctrl-C."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """HOST of the environment and A2A_GRPC_PORT are the defaults."""
        parser.add_argument("--host", default=os.environ.get("HOST") or "127.0.0.1")
        parser.add_argument(
            "--port",
            type=int,
            default=int(conf.GRPC_PORT) or USUAL_PORT,
            help=f"0 = any free one (default A2A_GRPC_PORT, or {USUAL_PORT})",
        )

    def handle(self, **options: Any) -> None:
        """Serve. The process ends with code 0 when the drain is over. CommandError when it cannot."""
        if not installed():
            raise CommandError(MISSING)
        refuse_without_tables()
        address = Address(options["host"], options["port"])
        serving = import_string(f"{LAUNCHER}.Serving")(
            drain_seconds=conf.DRAIN_SECONDS,
            on_listening=lambda host, port: self.say(host, port),
        )
        gc.collect()
        gc.freeze()  # what is loaded now stays; see `serve`
        try:
            import_string(f"{LAUNCHER}.serve")(address.host, address.port, serving)
        except OSError as error:
            raise CommandError(refusal(error, address)) from error

    def say(self, host: str, port: int) -> None:
        """Print where."""
        self.stdout.write(f"Serving gRPC on {Address(host, port).place}")
        self.stdout.flush()


def installed() -> bool:
    """Are the packages there that gRPC needs?"""
    names = ("grpc", "grpc_health", "grpc_reflection", "a2a")
    return all(find_spec(name) is not None for name in names)


def beside(host: str) -> None:
    """Serve gRPC too, in the process that is about to serve HTTP, if A2A_GRPC_PORT says so. CommandError when it cannot."""
    if not conf.GRPC_PORT:
        return
    if not installed():
        raise CommandError(MISSING)
    import_string(f"{LAUNCHER}.beside")(host, int(conf.GRPC_PORT))
