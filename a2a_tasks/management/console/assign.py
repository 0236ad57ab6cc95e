"""Say who of the staff sees to tasks that wait, or that nobody does any more."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from asgiref.sync import async_to_sync
from django.core.management.base import BaseCommand, CommandError

from a2a_tasks.admin.assigning import CannotHave, found
from a2a_tasks.audit import actor
from a2a_tasks.operations.assign_task import assign_by_key
from a2a_tasks.protocol.errors import A2AError
from a2a_tasks.store.waiting import asked

__all__ = ["add_arguments", "handle"]


def add_arguments(parser: ArgumentParser) -> None:
    """Which tasks, and to whom."""
    parser.add_argument(
        "keys", nargs="+", metavar="NUMBER", help="numbers, as `a2a waiting` has them"
    )
    whom = parser.add_mutually_exclusive_group(required=True)
    whom.add_argument("--to", metavar="USER", help="the name of a user who may answer")
    whom.add_argument("--release", action="store_true", help="to nobody any more")


def handle(command: BaseCommand, options: dict[str, Any]) -> None:
    """One after the other; those that could not be given away are told at the end."""
    refused = 0
    for name in options["keys"]:
        try:
            word = _assigned(int(name.removeprefix("#")), options["to"])
        except (CannotHave, A2AError) as fault:
            refused, word = refused + 1, str(fault)
        except (ValueError, OverflowError):
            refused, word = refused + 1, "is not a number of a task"
        command.stdout.write(f"{name}  {word}")
    if refused:
        raise CommandError(f"Not done: {refused} of them")


def _assigned(key: int, name: str | None) -> str:
    """Raises CannotHave, A2AError."""
    task = asked(key)
    user = None if name is None else found(name, task.scope.tenant if task else "").pk
    async_to_sync(assign_by_key)(key, user, by=actor())
    return "released" if name is None else f"given to {name}"
