"""Cancel tasks: each is final at once, then its agent is stopped. By ids, or all that filters mean."""

from __future__ import annotations

from collections import Counter
from typing import Any

from asgiref.sync import async_to_sync
from django.core.management.base import BaseCommand

from a2a_tasks.audit import actor
from a2a_tasks.management.choosing import add_choice, agreed, chosen
from a2a_tasks.management.progress import Progress
from a2a_tasks.operations.cancel_task import cancel_by_key
from a2a_tasks.protocol.errors import TaskNotCancelable, TaskNotFound
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import TaskState

__all__ = ["add_arguments", "handle"]

add_arguments = add_choice


def handle(command: BaseCommand, options: dict[str, Any]) -> None:
    """Cancel them one by one, and tell what became of them. It may be ended at any time."""
    keys = chosen(options, frozenset(TaskState) - TERMINAL)
    question = f"Cancel {len(keys)} tasks? A cancelled task is final."
    if not keys or not agreed(command, options, question):
        command.stdout.write("Nothing was done.")
        return
    counts: Counter[str] = Counter()
    with Progress(command.stderr, len(keys), "tasks") as shown:
        for done, key in enumerate(keys, 1):
            counts[_cancelled(key)] += 1
            shown(done)
    for what, count in counts.items():
        command.stdout.write(f"{what}: {count}")


def _cancelled(key: int) -> str:
    try:
        async_to_sync(cancel_by_key)(key, by=actor())
    except TaskNotCancelable:
        return "Already ended"
    except TaskNotFound:
        return "No longer there"
    return "Cancelled"
