"""`manage.py stack`: the production topology without containers, as processes of this machine.

What docker-compose.yml does with `restart: unless-stopped`, a small supervisor does here: it starts each process
in a group of its own, prefixes its output, restarts it with growing pauses when it dies, replaces all one by one
when asked (`--restart`, or SIGHUP), and ends all together.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from a2a_tasks.conf import conf
from a2a_tasks.management import running_stack
from a2a_tasks.management.commands.serve import (
    KILL_AFTER,
    add_serving_arguments,
    asked_address,
    listening,
    web,
)
from a2a_tasks.management.commands.up import migrate
from a2a_tasks.management.supervisor import Program, Supervisor

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Mapping


class Command(BaseCommand):
    """Runs web, worker, pusher and beat, and gRPC if it has a port."""

    help = (
        "Run web, worker, pusher, beat and, with A2A_GRPC_PORT, gRPC as processes against DATABASE_URL, REDIS_URL, CELERY_BROKER_URL. "
        "--restart has the running ones replaced, one by one."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """As `serve`, and how many of each."""
        add_serving_arguments(parser)
        parser.add_argument(
            "--web", type=int, default=1, help="web processes, on consecutive ports from PORT"
        )
        parser.add_argument(
            "--one-port", action="store_true", help="all web processes accept on PORT"
        )
        parser.add_argument("--workers", type=int, default=1, help="worker processes")
        parser.add_argument("--pushers", type=int, default=1, help="processes that send webhooks")
        parser.add_argument(
            "--restart",
            action="store_true",
            help="have the stack that runs replace its processes one by one, and wait for it",
        )

    def handle(self, **options: Any) -> None:
        """Migrate, then supervise until SIGTERM or Ctrl-C; or ask who supervises for new processes."""
        folder = Path(settings.VAR_DIR)
        if options["restart"]:
            self.restart(folder)
            return
        try:
            with running_stack.claimed(folder):
                self.supervise(folder, options)
        except running_stack.AlreadyRuns as fault:
            raise CommandError(
                f"A stack runs already on {folder}, as process {fault}. For another one, choose another VAR_DIR."
            ) from fault

    def supervise(self, folder: Path, options: dict[str, Any]) -> None:
        """Run the stack to its end."""
        address = asked_address(options)
        environ = stack_environ(os.environ)
        sockets = listening(address, options["web"], one_port=options["one_port"])
        if migrate():
            self.stdout.write("The database is up to date.")
        connections.close_all()
        descriptors = [sock.fileno() for sock in sockets] * (
            options["web"] if options["one_port"] else 1
        )
        rolls = running_stack.RollLog(folder)
        supervisor = Supervisor(
            environ,
            str(settings.BASE_DIR),
            conf.DRAIN_SECONDS + KILL_AFTER,
            self.say,
            sockets=sockets,
            prepare=migration(),
            on_roll=rolls.note,
            on_running=rolls.open,
        )
        # Workers first: a new web process may know agents that an old worker does not host.
        helpers = [*workers(options["workers"]), *pushers(options["pushers"])]
        serving = [*web(descriptors, options["server"]), *grpc(address.host)]
        programs = [*helpers, *serving, beat()]
        asyncio.run(supervisor.run(programs))

    def restart(self, folder: Path) -> None:
        """Have the processes replaced. CommandError when that stops, or there is no stack."""
        stopped = running_stack.restart(folder)
        if stopped is None:
            raise CommandError(f"No stack runs on {folder}. `make stack` starts one.")
        if stopped:
            raise CommandError(
                f"The restart stopped at {stopped}. Who was not replaced goes on as before; the stack's lines say more."
            )
        self.stdout.write("All processes were replaced.")

    def say(self, line: str) -> None:
        """Print a line at once."""
        with contextlib.suppress(OSError):  # the terminal was closed
            self.stdout.write(line)
            self.stdout.flush()


def stack_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """The children's environment; CommandError naming every variable that is missing."""
    known = {
        **environ,
        "CELERY_BROKER_URL": environ.get("CELERY_BROKER_URL") or environ.get("REDIS_URL", ""),
    }
    missing = [name for name in EXAMPLES if not known.get(name)]
    if missing:
        lines = "\n".join(f"  export {name}={EXAMPLES[name]}" for name in missing)
        raise CommandError(
            f"The stack needs servers of yours; not set: {', '.join(missing)}. For example:\n{lines}\n"
            "Without servers, `make run` starts the embedded host."
        )
    return {
        **known,
        "PYTHONUNBUFFERED": "1",
        "DJANGO_SETTINGS_MODULE": str(settings.SETTINGS_MODULE),
    }


EXAMPLES = {
    "DATABASE_URL": "postgres://a2a:secret@127.0.0.1:5432/a2a",
    "REDIS_URL": "redis://127.0.0.1:6379/0",
    "CELERY_BROKER_URL": "redis://127.0.0.1:6379/1",
}


def grpc(host: str) -> list[Program]:
    """The process that serves gRPC, if A2A_GRPC_PORT says at which port."""
    if not conf.GRPC_PORT:
        return []
    at = ("--host", host, "--port", str(conf.GRPC_PORT))
    return [Program("grpc", (sys.executable, "-m", "django", "serve_grpc", *at))]


def workers(count: int) -> list[Program]:
    """`count` Celery workers of all queues; threads, since one worker's loop carries hundreds of agents."""
    return [consumer("worker", n, threads=4) for n in range(1, count + 1)]


def pushers(count: int) -> list[Program]:
    """`count` Celery workers that send webhooks and run no agents."""
    return [consumer("pusher", n, "-Q", "webhooks", threads=1) for n in range(1, count + 1)]


def consumer(kind: str, n: int, *which: str, threads: int) -> Program:
    """A Celery worker with so many threads for jobs; `which` may name its queues."""
    options = ("-P", "threads", "-c", str(threads), "--without-gossip", "--without-mingle")
    told = (*which, "-l", "INFO", "-n", f"{kind}{n}@%h")
    return Program(f"{kind}.{n}", (*celery(), "worker", *options, *told))


def beat() -> Program:
    """The one beat, with its schedule's file under VAR_DIR."""
    schedule = Path(settings.VAR_DIR) / "celerybeat-schedule"
    command = (*celery(), "beat", "-l", "INFO", "--schedule", str(schedule))
    return Program("beat", command, alone=True)


def migration() -> Program:
    """What new processes need of the database, by the code they will run."""
    return Program("migrate", (sys.executable, "-m", "django", "migrate", "--no-input"))


def celery() -> tuple[str, ...]:
    """`celery -A PROJECT`, of the package the settings are in."""
    return (sys.executable, "-m", "celery", "-A", str(settings.SETTINGS_MODULE).partition(".")[0])
