"""List the tasks that wait for people, those that wait longest first."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from a2a_tasks.admin.shown import duration
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.waiting import KINDS, waiting

__all__ = ["add_arguments", "handle"]


def add_arguments(parser: ArgumentParser) -> None:
    """Which, and how many."""
    parser.add_argument("--agent", help="of this agent (its slug)")
    parser.add_argument("--kind", choices=sorted(KINDS), default="", help="what they wait for")
    parser.add_argument("--user", help="that this user sees to")
    parser.add_argument("--free", action="store_true", help="that nobody sees to")
    parser.add_argument("--limit", type=int, default=50, help="at most so many (50)")


def handle(command: BaseCommand, options: dict[str, Any]) -> None:
    """One line each: number, id, agent, what it waits for, how long, who sees to it."""
    rows = waiting(options["kind"]).select_related("assignment__user")
    rows = rows.only("public_id", "agent", "state", "status_at", "assignment__user__username")
    if options["agent"]:
        rows = rows.filter(agent=options["agent"])
    if options["user"]:
        rows = rows.filter(assignment__user__username=options["user"])
    if options["free"]:
        rows = rows.filter(assignment__isnull=True)
    now = timezone.now()
    for task in rows[: max(0, options["limit"])]:
        held = getattr(task, "assignment", None)
        person = held.user.get_username() if held else "-"
        words = (TaskState(task.state).word, duration(now - task.status_at), person)
        command.stdout.write("  ".join([f"#{task.pk}", task.public_id, task.agent, *words]))
