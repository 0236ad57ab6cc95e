"""`manage.py serve`: one serving process, or several on one port, ended in good order by SIGTERM or Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from channels.routing import get_default_application
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, OperationalError, connections
from django.db.migrations.executor import MigrationExecutor
from django.utils.module_loading import import_string

from a2a_tasks import process
from a2a_tasks.conf import conf
from a2a_tasks.management.supervisor import Program, Supervisor

if TYPE_CHECKING:
    import socket
    from argparse import ArgumentParser
    from collections.abc import Callable, Sequence

#: Seconds beyond the drain that a process gets to end before it is killed.
KILL_AFTER = 5.0
#: By name, since this app stands below the project that holds the launchers. `A2A_SERVERS` replaces it.
SERVERS = {
    "daphne": "a2a_project.daphne_server",
    "uvicorn": "a2a_project.uvicorn_server",
}
#: What to do about a database that cannot be used.
ADVICE = "Look at DATABASE_URL: the server has to run, the database to exist, and its user to own the tables."
#: What is wrong with an address, and what to do about it.
REFUSALS = {
    errno.EADDRINUSE: "Port {port} on {host} is taken by another process. Choose another one: PORT={other}",
    errno.EACCES: "Port {port} may not be opened by this user. Choose one above 1023: PORT=8000",
    errno.EADDRNOTAVAIL: "{host} is not an address of this machine. Use HOST=127.0.0.1 or HOST=0.0.0.0",
}


@dataclass(frozen=True, slots=True)
class Address:
    """Where to serve."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """The root as a person would open it: a wildcard address is reached by name."""
        name = {"0.0.0.0": "localhost", "::": "localhost"}.get(self.host, self.host)  # noqa: S104 - compared only
        return f"http://{Address(name, self.port).place}/"

    @property
    def place(self) -> str:
        """Host and port, as they are written together."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Command(BaseCommand):
    """Serves the site."""

    help = "Serve the site until SIGTERM or Ctrl-C, in this process or in several. -v 2 logs each request."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """HOST, PORT and SERVER of the environment are the defaults."""
        add_serving_arguments(parser)
        parser.add_argument(
            "--fd",
            type=int,
            help="accept on this inherited listening socket instead of opening HOST:PORT",
        )
        parser.add_argument(
            "--processes",
            type=int,
            default=1,
            help="processes that accept on HOST:PORT; more than one use more cores (default 1)",
        )

    def handle(self, **options: Any) -> None:
        """Serve. The process ends with code 0 when the drain is over."""
        refuse_without_tables()
        if options["processes"] > 1:
            supervise(options, self.say)
        else:
            serve_site(options, lambda at: self.stdout.write(f"Serving on {at.url}"))

    def say(self, line: str) -> None:
        """Print a line at once."""
        self.stdout.write(line)
        self.stdout.flush()


def add_serving_arguments(parser: ArgumentParser) -> None:
    """The arguments of every command that serves."""
    variable = os.environ.get
    parser.add_argument("--host", default=variable("HOST") or "127.0.0.1")
    parser.add_argument(
        "--port", default=variable("PORT") or "8000", help="0 = any free one (default 8000)"
    )
    parser.add_argument("--server", choices=SERVERS, default=variable("SERVER") or "daphne")
    parser.add_argument(
        "--trusted-proxies",
        default=variable("TRUSTED_PROXIES") or "",
        help="addresses and networks, separated by commas, whose X-Forwarded-For and -Proto are believed",
    )


def refuse_without_tables() -> None:
    """CommandError if migrations are missing, or the database cannot be used; one that is away may come later."""
    try:
        missing = lacking()
    except OperationalError:  # /readyz says so
        missing = 0
    except DatabaseError as error:
        raise unusable(error) from error
    if missing:
        raise CommandError(
            f"The database lacks {missing} migrations of this version. Apply them: python manage.py migrate"
        )
    connections.close_all()


def launcher_of(server: str) -> str:
    """The module that serves; CommandError for an unknown server: argparse does not look at a default."""
    if server not in SERVERS:
        raise CommandError(f"SERVER must be one of {', '.join(SERVERS)}, not {server!r}.")
    return str(getattr(settings, "A2A_SERVERS", SERVERS)[server])


def lacking() -> int:
    """How many migrations the database has not. Looking is quicker than Django's own empty run."""
    executor = MigrationExecutor(connections["default"])
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def unusable(error: DatabaseError) -> CommandError:
    """Why the database cannot be used, in its own words on one line, and what to do about it."""
    why = " ".join(str(error).split())
    return CommandError(f"The database cannot be used: {why}. {ADVICE}")


def asked_address(options: dict[str, Any]) -> Address:
    """The address of the options; CommandError when the port is no port."""
    port = str(options["port"])
    if not (port.isdecimal() and int(port) <= 65_535):  # noqa: PLR2004 - the largest port there is
        raise CommandError(f"PORT must be a number from 0 to 65535, not {port!r}.")
    return Address(options["host"], int(port))


def listening(address: Address, count: int, *, one_port: bool) -> list[socket.socket]:
    """The sockets of `count` web processes: on consecutive ports, any free ones from 0, or the one they share.

    CommandError when one cannot be had. They belong to who supervises, so that nobody is refused while
    one process follows another.
    """
    number = 1 if one_port else count
    ports = range(address.port, address.port + number) if address.port else [0] * number
    with contextlib.ExitStack() as unless_all:
        sockets = [unless_all.enter_context(_listen(Address(address.host, port))) for port in ports]
        unless_all.pop_all()
    return sockets


def _listen(address: Address) -> socket.socket:
    try:
        return process.listen(address.host, address.port)
    except OSError as error:
        raise CommandError(refusal(error, address)) from error


def web(descriptors: Sequence[int], server: str) -> list[Program]:
    """A serving process for each of these listening sockets. CommandError for an unknown server."""
    launcher_of(server)
    serve = (sys.executable, "-m", "django", "serve", "--server", server)
    return [
        Program(f"web.{n}", (*serve, "--fd", str(descriptor)), (descriptor,))
        for n, descriptor in enumerate(descriptors, 1)
    ]


def supervise(options: dict[str, Any], say: Callable[[str], None]) -> None:
    """Serve in several processes that accept on one socket, and keep them running until a signal."""
    address = asked_address(options)
    sockets = listening(address, 1, one_port=True)
    at = Address(*process.address_of(sockets[0]))
    descriptors = [sock.fileno() for sock in sockets] * options["processes"]
    environ = {
        **os.environ,
        "PYTHONUNBUFFERED": "1",
        "DJANGO_SETTINGS_MODULE": str(settings.SETTINGS_MODULE),
        "TRUSTED_PROXIES": options["trusted_proxies"],
    }
    supervisor = Supervisor(
        environ, str(settings.BASE_DIR), conf.DRAIN_SECONDS + KILL_AFTER, say, sockets=sockets
    )
    say(f"Serving on {at.url} with {options['processes']} processes")
    asyncio.run(supervisor.run(web(descriptors, options["server"])))


def serve_site(options: dict[str, Any], on_listening: Callable[[Address], object]) -> None:
    """Serve ASGI_APPLICATION as the options say; CommandError when the address cannot be had.

    `on_listening` gets the real address once connections are accepted.
    """

    def tell_site(host: str, port: int) -> None:
        at = Address(host, port)
        process.site = at.url.rstrip("/")
        on_listening(at)

    address = asked_address(options)
    launcher = launcher_of(options["server"])
    serving = import_string(f"{launcher}.Serving")(
        drain_seconds=conf.DRAIN_SECONDS,
        access_log=options["verbosity"] > 1,
        trusted_proxies=tuple(filter(None, map(str.strip, options["trusted_proxies"].split(",")))),
        request_seconds=conf.REQUEST_SECONDS,
        request_bytes_per_second=max(1, conf.REQUEST_BYTES_PER_SECOND),
        max_body_bytes=conf.MAX_BODY_BYTES,
        on_listening=tell_site,
        descriptor=options.get("fd"),
    )
    with contextlib.suppress(OSError):  # without it, whitenoise warns
        Path(settings.STATIC_ROOT).mkdir(parents=True, exist_ok=True)
    application = get_default_application()
    gc.collect()
    gc.freeze()  # what is loaded now stays; searching it again and again costs pauses of 50 ms
    try:
        import_string(f"{launcher}.serve")(application, address.host, address.port, serving)
    except OSError as error:
        raise CommandError(refusal(error, address)) from error


def refusal(error: OSError, address: Address) -> str:
    """Why an address cannot be had, and what to do about it."""
    text = REFUSALS.get(error.errno or 0, "Cannot serve on {host}:{port}: {error}.")
    other = address.port + 1 if address.port < 65_535 else 8000  # noqa: PLR2004 - the largest port there is
    return text.format(host=address.host, port=address.port, other=other, error=error)
