"""List tasks, newest first: by id, state, agent, owner, words of what they began with, and more."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from django.core.management.base import BaseCommand

from a2a_tasks.management.choosing import add_filters, printable, selection
from a2a_tasks.store.sheet import csv_text, json_text, whole

__all__ = ["add_arguments", "handle"]

LINES = 50
#: Columns of the table, and how wide each is.
TABLE = {"id": 36, "state": 14, "agent": 16, "owner": 20, "created_at": 24, "opening": 60}


def add_arguments(parser: ArgumentParser) -> None:
    """Filters, and how they are shown."""
    parser.add_argument(
        "search", nargs="?", help="an id or how it begins, the id of a context, or words"
    )
    add_filters(parser)
    parser.add_argument("--lines", type=int, default=LINES, help=f"at most (default {LINES})")
    parser.add_argument("--format", choices=["table", "json", "csv"], default="table")


def handle(command: BaseCommand, options: dict[str, Any]) -> None:
    """Write a line of each."""
    wanted = replace(selection(options), search=options["search"])
    each = (record for records in whole(wanted) for record in records)
    found = list(islice(each, max(0, options["lines"]) + 1))
    shown, more = found[: max(0, options["lines"])], len(found) > options["lines"]
    match options["format"]:
        case "json":
            command.stdout.write(json_text(shown), ending="")
        case "csv":
            command.stdout.write(csv_text(shown, heading=True), ending="")
        case _:
            for line in _table(shown):
                command.stdout.write(line)
    if more:
        command.stderr.write("There are more: --lines.")


def _table(records: list[dict[str, Any]]) -> Iterator[str]:
    yield "  ".join(name.ljust(width) for name, width in TABLE.items()).rstrip()
    for record in records:
        cells = (printable(str(record[name]))[:width].ljust(width) for name, width in TABLE.items())
        yield "  ".join(cells).rstrip()
