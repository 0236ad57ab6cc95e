"""Write all tasks that filters mean to a file or to the output, as CSV or as JSON, an object a line.

They are written as they are read, so that no export is too long. What they said is not in it beyond how they began;
`manage.py privacy export` has everything of somebody.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser
from pathlib import Path
from typing import IO, Any

from django.core.management.base import BaseCommand

from a2a_tasks.audit import Action
from a2a_tasks.management.choosing import add_filters, selection
from a2a_tasks.management.progress import Progress
from a2a_tasks.store import audit
from a2a_tasks.store.selection import Selection
from a2a_tasks.store.sheet import csv_text, json_text, whole

__all__ = ["add_arguments", "handle"]


def add_arguments(parser: ArgumentParser) -> None:
    """Which, as what, and where to."""
    add_filters(parser)
    parser.add_argument("--format", choices=["json", "csv"], default="csv")
    parser.add_argument("--to", type=Path, metavar="FILE", help="for its owner alone (default: -)")


def handle(command: BaseCommand, options: dict[str, Any]) -> None:
    """Write them."""
    wanted = selection(options)
    audit.note(Action.TASK_EXPORT, detail={"as": options["format"], "of": str(wanted.said())})
    with Progress(command.stderr, 0, "tasks") as shown:
        if options["to"] is None:
            done = _written(command.stdout, wanted, options["format"], shown)
        else:
            descriptor = os.open(options["to"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
                done = _written(file, wanted, options["format"], shown)
    command.stderr.write(f"Tasks: {done}")


def _written(out: IO[str] | Any, wanted: Selection, form: str, shown: Progress) -> int:
    done = 0
    if form == "csv":
        out.write(csv_text([], heading=True))
    for records in whole(wanted):
        out.write(csv_text(records) if form == "csv" else json_text(records))
        done += len(records)
        shown(done)
    return done
