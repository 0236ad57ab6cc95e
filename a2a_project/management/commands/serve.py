"""`manage.py serve`: one process that serves the site, ended in good order by SIGTERM or Ctrl-C."""

from __future__ import annotations

import errno
import gc
import os
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from channels.routing import get_default_application
from django.core.management.base import BaseCommand, CommandError, OutputWrapper

from a2a_project import server
from a2a_project.open_address import refuse_open_address
from a2a_tasks import process, process_lifetime
from a2a_tasks.management.database import refuse_unusable_database
from a2a_tasks.telemetry import patient_stream
from a2a_tasks.telemetry.printed_lines import log_printed_lines

#: Messages for an unusable address, with the remedy.
REFUSALS = {
    errno.EADDRINUSE: "Port {port} on {host} is taken by another process. Choose another one: PORT={other}",
    errno.EACCES: "Port {port} may not be opened by this user. Choose one above 1023: PORT=8000",
    errno.EADDRNOTAVAIL: "{host} is not an address of this machine. Use HOST=127.0.0.1 or HOST=0.0.0.0",
}


@dataclass(frozen=True, slots=True)
class Address:
    """The address at which to serve."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """The root as a person would open it."""
        return f"http://{self.dialled.place}/"

    @property
    def dialled(self) -> Address:
        """The address for clients here: a name in place of a wildcard; `::` is a wildcard of IPv6 only."""
        name = {"0.0.0.0": "localhost", "::": "::1"}.get(self.host, self.host)  # noqa: S104 - compared only
        return Address(name, self.port)

    @property
    def place(self) -> str:
        """Host and port in one text."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class ServingCommand(BaseCommand):
    """A command that serves. It tells people the address on the standard output, and all else is in the log."""

    def execute(self, *args: Any, **options: Any) -> Any:
        """Run the command, and write the warnings of system checks and later errors as the log is written."""
        log_printed_lines()
        patient_stream.replace_standard_streams()
        self.stderr = OutputWrapper(sys.stderr)
        wrapper: Any = self.stdout
        if wrapper._out is sys.__stdout__:  # noqa: SLF001 - it has no other name
            wrapper._out = patient_stream.stdout  # noqa: SLF001
        return super().execute(*args, **options)


class Command(ServingCommand):
    """The command: it serves the site."""

    help = (
        "Serve the site in this process until SIGTERM or Ctrl-C. -v 2 logs each request. For several processes: "
        "gunicorn -c deploy/gunicorn.conf.py a2a_project.asgi:application"
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the arguments, with HOST and PORT of the environment as defaults."""
        add_address(parser)

    def handle(self, **options: Any) -> None:
        """Serve. The process ends with code 0 when the drain is over."""
        refuse_open_address(read_address(options).host)
        refuse_unusable_database()
        serve_site(options, lambda at: self.stdout.write(f"Serving on {at.url}"))


def add_address(parser: ArgumentParser) -> None:
    """Add the address to the arguments of a command that serves the site."""
    parser.add_argument("--host", default=os.environ.get("HOST") or "127.0.0.1")
    parser.add_argument(
        "--port",
        default=os.environ.get("PORT") or "8000",
        help="0 = any free one (default 8000)",
    )


def read_address(options: dict[str, Any]) -> Address:
    """Return the address of the options; CommandError for an invalid port."""
    port = str(options["port"])
    if not (port.isdecimal() and int(port) <= 65_535):  # noqa: PLR2004 - the largest port there is
        raise CommandError(f"PORT must be a number from 0 to 65535, not {port!r}.")
    return Address(options["host"], int(port))


def serve_site(options: dict[str, Any], on_listening: Callable[[Address], object]) -> None:
    """Serve the site with the options; CommandError when the address cannot be used.

    `on_listening` gets the real address once connections are accepted.
    """
    address = read_address(options)
    try:
        sock = process.listen(address.host, address.port)
    except OSError as error:
        raise CommandError(refusal(error, address)) from error
    at = Address(*process.address_of(sock))
    process.site = at.url.rstrip("/")
    application = get_default_application()

    async def tell_address() -> None:
        on_listening(at)

    process_lifetime.on_start(tell_address)  # the last of the callbacks
    gc.collect()
    gc.freeze()  # loaded objects stay: scanning them again and again costs pauses of 50 ms
    server.serve(application, sock, access_log=options["verbosity"] > 1)


def refusal(error: OSError, address: Address, variable: str = "PORT") -> str:
    """Return the reason why an address cannot be used, and the remedy; `variable` names its port."""
    text = REFUSALS.get(error.errno or 0, "Cannot serve on {host}:{port}: {error}.")
    other = address.port + 1 if address.port < 65_535 else 8000  # noqa: PLR2004 - the largest port there is
    text = text.replace("PORT=", f"{variable}=")
    return text.format(host=address.host, port=address.port, other=other, error=error)
