"""Show a task by its id or number: what it is, and what was said, did and came of it, as JSON.

Where several owners have a task of the id, all of them are shown, a document a line.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandError

from a2a_tasks.management.choosing import printable
from a2a_tasks.store.named import named
from a2a_tasks.store.sheet import told

__all__ = ["add_arguments", "handle"]


def add_arguments(parser: ArgumentParser) -> None:
    """Which one."""
    parser.add_argument("id", metavar="ID", help="the id of a task, or its number (#17)")


def handle(command: BaseCommand, options: dict[str, Any]) -> None:
    """Write it down."""
    found = [document for key in named(options["id"]) if (document := told(key)) is not None]
    if not found:
        raise CommandError(f"There is no task called {printable(options['id'])}")
    for document in found:
        text = msgspec.json.format(msgspec.json.encode(document), indent=2)
        command.stdout.write(text.decode())
