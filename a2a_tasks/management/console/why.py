"""Why a task is stuck: what it waits for, what happens next, and when."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from a2a_tasks.admin.shown import moment
from a2a_tasks.operations.standing import Needs, Reason, standing
from a2a_tasks.store.named import named

__all__ = ["add_arguments", "handle"]

#: Who has to do something, in a word before what comes next.
CALLED = {Needs.NOBODY: "", Needs.CLIENT: "(its client) ", Needs.OPERATOR: "(you) "}


def add_arguments(parser: ArgumentParser) -> None:
    """Which task."""
    parser.add_argument("task", help="its id, or its number (#17)")


def handle(command: BaseCommand, options: Mapping[str, Any]) -> None:
    """Tell of every task of that id: owners may use the same."""
    keys = named(options["task"])
    if not keys:
        raise CommandError(f"There is no task {options['task']}.")
    for key in keys:
        found = standing(key)
        if len(keys) > 1:
            command.stdout.write(f"Task #{key}:")
        for reason in (found, *found.also):
            _tell(command, reason)


def _tell(command: BaseCommand, reason: Reason) -> None:
    when = f" ({moment(reason.at)})" if reason.at else ""
    command.stdout.write(f"[{reason.kind}] {reason.sentence}")
    command.stdout.write(f"  Next: {CALLED[reason.needs]}{reason.next}{when}")
