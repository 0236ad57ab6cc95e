"""Run ended tasks again: each begins once more, as a new task of its owner, by its first message.

Its agent may do twice what it did before. Each line of the output is an old task's number and the new task's id.
"""

from __future__ import annotations

import uuid
from argparse import ArgumentParser
from collections import Counter
from typing import Any

from asgiref.sync import async_to_sync
from django.core.management.base import BaseCommand, CommandError

from a2a_tasks.management.choosing import add_choice, agreed, chosen
from a2a_tasks.management.progress import Progress
from a2a_tasks.operations.run_again import CannotRunAgain, run_again
from a2a_tasks.protocol.errors import TaskNotFound
from a2a_tasks.protocol.lifecycle import TERMINAL

__all__ = ["add_arguments", "handle"]


def add_arguments(parser: ArgumentParser) -> None:
    """Which, and as whose wish."""
    add_choice(parser)
    parser.add_argument(
        "--nonce",
        default="",
        help="a word for this wish: said again, it runs nothing twice, so that an interrupted command can be repeated",
    )


def handle(command: BaseCommand, options: dict[str, Any]) -> None:
    """Run them again one by one, and tell what became of them."""
    keys = chosen(options, TERMINAL)
    question = f"Run {len(keys)} tasks again? What their agents did they may do twice."
    if not keys or not agreed(command, options, question):
        command.stdout.write("Nothing was done.")
        return
    nonce = options["nonce"] or uuid.uuid4().hex
    refused: Counter[str] = Counter()
    with Progress(command.stderr, len(keys), "tasks") as shown:
        for done, key in enumerate(keys, 1):
            try:
                again = async_to_sync(run_again)(key, nonce=nonce)
            except CannotRunAgain as why:
                refused[str(why)] += 1
            except TaskNotFound:
                refused["No longer there"] += 1
            else:
                command.stdout.write(f"#{key}  {again.id}")
            shown(done)
    for reason, count in refused.items():
        command.stderr.write(f"Not run again: {count}. {reason}.")
    if refused:
        raise CommandError(f"Run again: {len(keys) - refused.total()} of {len(keys)}.")
