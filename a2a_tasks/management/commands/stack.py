"""`manage.py stack`: the production topology without containers, as processes of this machine.

What docker-compose.yml does with `restart: unless-stopped`, a small supervisor does here: it starts each process
in a group of its own, prefixes its output, restarts it with growing pauses when it dies, and ends all together.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from a2a_tasks.agents import registry
from a2a_tasks.conf import conf
from a2a_tasks.management.commands.serve import Address, add_serving_arguments, asked_address
from a2a_tasks.management.commands.up import migrate

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable, Mapping

#: Seconds beyond the drain that a process gets to end before it is killed.
KILL_AFTER = 5.0
#: Pauses before restarts, in seconds; the last one is repeated.
PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
#: Seconds of life after which a process counts as well again.
WELL_AFTER = 30.0
#: Longest line of output that is passed on whole, in bytes.
LONGEST_LINE = 1 << 20
WIDTH = 9
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Program:
    """One process of the stack."""

    name: str
    command: tuple[str, ...]


class Command(BaseCommand):
    """Runs web, worker and beat."""

    help = (
        "Run web, worker and beat as processes against DATABASE_URL, REDIS_URL, CELERY_BROKER_URL."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """As `serve`, and how many of each."""
        add_serving_arguments(parser)
        parser.add_argument(
            "--web", type=int, default=1, help="web processes, on consecutive ports from PORT"
        )
        parser.add_argument("--workers", type=int, default=1, help="worker processes")

    def handle(self, **options: Any) -> None:
        """Migrate, then supervise until SIGTERM or Ctrl-C."""
        address = asked_address(options)
        environ = stack_environ(os.environ)
        if migrate():
            self.stdout.write("The database is up to date.")
        connections.close_all()
        programs = [
            *web(address, options["web"], options["server"]),
            *workers(options["workers"]),
            beat(),
        ]
        supervisor = Supervisor(
            environ, str(settings.BASE_DIR), conf.DRAIN_SECONDS + KILL_AFTER, self.say
        )
        asyncio.run(supervisor.run(programs))

    def say(self, line: str) -> None:
        """Print a line at once."""
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


def web(address: Address, count: int, server: str) -> list[Program]:
    """`count` serving processes on consecutive ports; each on any free one if the first is 0."""
    serve = (sys.executable, "-m", "django", "serve", "--host", address.host, "--server", server)
    ports = range(address.port, address.port + count) if address.port else [0] * count
    return [Program(f"web.{n}", (*serve, "--port", str(port))) for n, port in enumerate(ports, 1)]


def queues() -> list[str]:
    """The queues that the agents of this host name, and the one of the host's own jobs."""
    return sorted({"agents", *(agent.queue for agent in registry.agents())})


def workers(count: int) -> list[Program]:
    """`count` Celery workers; threads, since one worker's loop carries hundreds of agents."""
    options = (
        "-P",
        "threads",
        "-c",
        "4",
        "--without-gossip",
        "--without-mingle",
        "-Q",
        ",".join(queues()),
        "-l",
        "INFO",
    )
    return [
        Program(f"worker.{n}", (*celery(), "worker", *options, "-n", f"worker{n}@%h"))
        for n in range(1, count + 1)
    ]


def beat() -> Program:
    """The one beat, with its schedule's file under VAR_DIR."""
    schedule = Path(settings.VAR_DIR) / "celerybeat-schedule"
    return Program("beat", (*celery(), "beat", "-l", "INFO", "--schedule", str(schedule)))


def celery() -> tuple[str, ...]:
    """`celery -A PROJECT`, of the package the settings are in."""
    return (sys.executable, "-m", "celery", "-A", str(settings.SETTINGS_MODULE).partition(".")[0])


@dataclass
class Supervisor:
    """Keeps programs running until it is told to end, then ends them together."""

    environ: dict[str, str]
    directory: str
    #: Seconds between SIGTERM and SIGKILL.
    patience: float
    say: Callable[[str], None]
    pauses: tuple[float, ...] = PAUSES
    _running: dict[str, asyncio.subprocess.Process] = field(default_factory=dict)
    _ending: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, programs: list[Program]) -> None:
        """Start all; return when all have ended after SIGTERM or SIGINT. A second signal kills them."""
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signum, self.end)
        keepers = [asyncio.create_task(self._keep(program)) for program in programs]
        await self._ending.wait()
        _, late = await asyncio.wait(keepers, timeout=self.patience)
        if late:
            self.say(
                f"{'stack':{WIDTH}}| {len(late)} process(es) did not end in time and are killed"
            )
            self._signal_all(signal.SIGKILL)
        await asyncio.gather(*keepers)

    def end(self) -> None:
        """Ask all processes to end; asked again, kill them."""
        self._signal_all(signal.SIGKILL if self._ending.is_set() else signal.SIGTERM)
        self._ending.set()

    async def _keep(self, program: Program) -> None:
        """Run a program again and again, with a pause that grows while it does not stay alive."""
        loop, deaths = asyncio.get_running_loop(), 0
        while not self._ending.is_set():
            begun = loop.time()
            code = await self._run_once(program)
            if self._ending.is_set():
                self.say(f"{program.name:{WIDTH}}| ended with code {code}")
                return
            deaths = 0 if loop.time() - begun > WELL_AFTER else deaths
            pause = self.pauses[min(deaths, len(self.pauses) - 1)]
            deaths += 1
            self.say(f"{program.name:{WIDTH}}| died with code {code}; again in {pause} s")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), pause)

    async def _run_once(self, program: Program) -> int:
        process = await asyncio.create_subprocess_exec(
            *program.command,
            cwd=self.directory,
            env=self.environ,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            limit=LONGEST_LINE,
            start_new_session=True,  # Ctrl-C is for us: we end them in order
            preexec_fn=end_with_parent,
        )
        self._running[program.name] = process
        self.say(f"{program.name:{WIDTH}}| started as process {process.pid}")
        if self._ending.is_set():  # asked to end while it was being started
            self._signal(process, signal.SIGTERM)
        try:
            if process.stdout is not None:
                await self._pass_on(program.name, process.stdout)
            return await process.wait()
        finally:
            del self._running[program.name]

    async def _pass_on(self, name: str, output: asyncio.StreamReader) -> None:
        while line := await _line(output):
            self.say(f"{name:{WIDTH}}| {line.decode(errors='replace').rstrip()}")

    def _signal_all(self, signum: int) -> None:
        for process in self._running.values():
            self._signal(process, signum)

    def _signal(self, process: asyncio.subprocess.Process, signum: int) -> None:
        """To the group for SIGKILL; only to the process else, which knows best how to end its children."""
        with contextlib.suppress(ProcessLookupError):
            if signum == signal.SIGKILL:
                os.killpg(process.pid, signum)
            else:
                process.send_signal(signum)


async def _line(output: asyncio.StreamReader) -> bytes:
    """The next line; b"" at the end. One that is too long comes in pieces."""
    try:
        return await output.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        return error.partial
    except asyncio.LimitOverrunError as error:
        return await output.readexactly(error.consumed)


def end_with_parent() -> None:
    """In the child, on Linux: SIGTERM when the supervisor dies without a word, so that nothing keeps the ports."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
