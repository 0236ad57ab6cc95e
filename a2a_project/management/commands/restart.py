"""`manage.py restart`: the running `make stack` is replaced process by process, and goes on serving meanwhile."""

from __future__ import annotations

import importlib
import os
import signal
import socket
import time
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from a2a_tasks.conf import project
from a2a_tasks.store import workers

#: Seconds in which a process must be replaced.
READY_SECONDS = 60.0
LOOK_SECONDS = 0.2


class Command(BaseCommand):
    """The command: it migrates, then sends SIGHUP to workers, one by one, and to the web processes at last."""

    help = "Replace the workers and web processes of `make stack` with the current code. `make restart` calls it."

    def handle(self, **options: Any) -> None:
        """Replace them. CommandError if no stack runs, or if a process is not replaced in time."""
        folder = Path(project.VAR_DIR)
        files = [*sorted(folder.glob("worker.*.pid")), *sorted(folder.glob("pusher.*.pid"))]
        web = sorted(folder.glob("web.*.pid"))
        if not web:
            raise CommandError(f"No stack runs on {folder}. `make stack` starts one.")
        # A mistake in the code ends this command, not the processes that run.
        importlib.import_module("a2a_project.asgi")
        importlib.import_module("a2a_project.celery")
        call_command("migrate", interactive=False, verbosity=0)
        # Workers first: a new web process may know agents that an old worker does not host.
        for file in files:
            pid = self.replace(file)
            self.wait(file, lambda one, pid=pid: one.pid == pid)
        for file in web:
            self.replace(file)
            self.wait(file, lambda one: one.kind == workers.WorkerKind.WEB)

    def replace(self, file: Path) -> int:
        """Ask the process of a file to replace itself, or its children; returns its id."""
        pid = int(file.read_text())
        self.asked = timezone.now()
        try:
            os.kill(pid, signal.SIGHUP)
        except ProcessLookupError:
            raise CommandError(f"{file.stem}: process {pid} has ended; end the stack.") from None
        return pid

    def wait(self, file: Path, concerned: Any) -> None:
        """Wait until the processes concerned on this machine have begun after the request."""
        deadline = time.monotonic() + READY_SECONDS
        while True:
            here = [one for one in workers.alive() if one.host == socket.gethostname()]
            mine = [one for one in here if concerned(one) and not one.draining]
            if mine and all(one.started_at > self.asked for one in mine):
                self.stdout.write(f"{file.stem} was replaced.")
                return
            if time.monotonic() > deadline:
                raise CommandError(
                    f"{file.stem} is not replaced after {READY_SECONDS:g} s; see its lines in the output of the stack."
                )
            time.sleep(LOOK_SECONDS)
