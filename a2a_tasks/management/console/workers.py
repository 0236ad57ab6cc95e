"""List the processes of this host: which are alive, what each is for, and how busy it is."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from a2a_tasks.admin.shown import duration
from a2a_tasks.admin.worker_admin import state_of
from a2a_tasks.store import workers

__all__ = ["add_arguments", "handle"]


def add_arguments(parser: ArgumentParser) -> None:
    """Which ones, and how much of each."""
    parser.add_argument("--queue", default="", help="only those alive that take from it")
    parser.add_argument("--runs", action="store_true", help="also the runs that each holds")


def handle(command: BaseCommand, options: dict[str, Any]) -> None:
    """One line each."""
    takes = {row.name for row in workers.alive(options["queue"])} if options["queue"] else None
    for told in workers.seen():
        row = told.worker
        if takes is not None and row.name not in takes:
            continue
        load = f"{row.running} of {row.slots} runs" if row.slots else "no runs"
        words = [row.name, state_of(told), row.kind, ",".join(row.queues) or "-", load]
        words += [row.version or "-", f"seen {duration(told.silence)} ago"]
        command.stdout.write("  ".join(words))
        for run in workers.holding(row.name) if options["runs"] else ():
            command.stdout.write(f"  run {run.pk} of {run.task.agent}: task {run.task.public_id}")
