"""`manage.py serve_grpc`: one process that serves gRPC, ended in good order by SIGTERM or Ctrl-C."""

from __future__ import annotations

import gc
import os
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from a2a_project import grpc_process, metrics_port
from a2a_project.management.commands.serve import Address, ServingCommand, refusal
from a2a_project.open_address import refuse_open_address
from a2a_tasks import process
from a2a_tasks.conf import conf, forget
from a2a_tasks.guests import GuestMissing
from a2a_tasks.management.database import refuse_unusable_database

#: The usual port of gRPC servers.
USUAL_PORT = 50051


class Command(ServingCommand):
    """The command: it serves gRPC in one process."""

    help = "Serve gRPC in this process until SIGTERM or Ctrl-C."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the arguments, with HOST of the environment and A2A_GRPC_PORT as defaults."""
        parser.add_argument("--host", default=os.environ.get("HOST") or "127.0.0.1")
        parser.add_argument(
            "--port",
            type=int,
            default=int(conf.GRPC_PORT) or USUAL_PORT,
            help=f"0 = any free one (default A2A_GRPC_PORT, or {USUAL_PORT})",
        )

    def handle(self, **options: Any) -> None:
        """Serve. The process ends with code 0 when the drain is over. CommandError when it cannot serve."""
        address = Address(options["host"], options["port"])
        refuse_open_address(address.host)
        refuse_unusable_database()
        metrics_port.listen()
        gc.collect()
        gc.freeze()  # loaded objects stay; see `serve`
        try:
            grpc_process.serve(address.host, address.port, self.say)
        except OSError as error:
            raise CommandError(refusal(error, address)) from error
        except GuestMissing as fault:
            raise CommandError(f"No gRPC: {fault}") from fault

    def say(self, host: str, port: int) -> None:
        """Print the address."""
        self.stdout.write(f"Serving gRPC on {Address(host, port).place}")
        self.stdout.flush()


def serve_in_background(host: str) -> str:
    """Serve gRPC as well, in the process that is about to serve HTTP.

    The port is A2A_GRPC_PORT, or the usual one if the variable does not exist. Returns the reason for no gRPC if the
    usual one cannot be used. CommandError if that of the variable cannot.
    """
    chosen = int(conf.GRPC_PORT)
    if not chosen and "A2A_GRPC_PORT" in os.environ:
        return ""
    address = Address(host, chosen or USUAL_PORT)
    try:
        grpc_process.serve_in_background(process.listen(address.host, address.port))
    except OSError as error:
        reason = refusal(error, address, "A2A_GRPC_PORT")
        if chosen:
            raise CommandError(reason) from error
        return f"No gRPC: {reason}"
    except GuestMissing as fault:
        if chosen:
            raise CommandError(f"No gRPC: {fault}") from fault
        return f"No gRPC: {fault}"
    os.environ["A2A_GRPC_PORT"] = str(address.port)
    forget()
    return ""
