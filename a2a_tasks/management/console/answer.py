"""Answer, in its owner's place, what a task waits for: with text, JSON, files."""

from __future__ import annotations

import mimetypes
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from asgiref.sync import async_to_sync
from django.core.management.base import BaseCommand, CommandError

from a2a_tasks.agents import Part, file
from a2a_tasks.audit import actor
from a2a_tasks.operations.answer_task import answer_by_key, content
from a2a_tasks.protocol.errors import A2AError, InvalidParams

__all__ = ["add_arguments", "handle"]


def add_arguments(parser: ArgumentParser) -> None:
    """Which task, and what is answered."""
    parser.add_argument("key", metavar="NUMBER", help="the task's number, as `a2a waiting` has it")
    parser.add_argument("text", nargs="?", default="", help="what is said")
    parser.add_argument("--data", default="", help="JSON")
    parser.add_argument("--file", action="append", default=[], metavar="PATH", help="once for each")
    parser.add_argument("--event", type=int, help="only if that is still its newest event")


def handle(command: BaseCommand, options: dict[str, Any]) -> None:
    """Send it, and say how the task stands."""
    try:
        parts = content(options["text"], options["data"], [_file(path) for path in options["file"]])
        key = int(options["key"].removeprefix("#"))
        task = async_to_sync(answer_by_key)(key, parts, by=actor(), event=options["event"])
    except InvalidParams as fault:
        raise CommandError("; ".join(text for _, text in fault.violations)) from None
    except A2AError as fault:
        raise CommandError(fault.message) from None
    except (ValueError, OverflowError):
        raise CommandError(f"{options['key']} is not a number of a task") from None
    command.stdout.write(f"{task.id}  {task.status.state.word}")


def _file(path: str) -> Part:
    """Raises CommandError for one that cannot be read."""
    try:
        found = Path(path).read_bytes()
    except OSError as fault:
        raise CommandError(f"{path}: {fault.strerror}") from None
    kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
    return file(found, Path(path).name, kind)
