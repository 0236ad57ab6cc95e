"""`manage.py a2a`: find tasks, cancel them, and see why one is stuck. The management API does the rest."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections import Counter
from dataclasses import replace
from itertools import islice
from typing import Any

from asgiref.sync import async_to_sync
from django.core.management.base import BaseCommand, CommandError

from a2a_console.diagnosis.reasons import Needs, diagnose
from a2a_console.management import moments
from a2a_console.management.progress import Progress
from a2a_console.search.selection import STATES, UNFINISHED, Selection
from a2a_console.search.stuck_tasks import KINDS
from a2a_console.search.task_flags import MARKS
from a2a_console.search.task_record import csv_text, json_text, keys_of, whole
from a2a_console.search.task_reference import parse_task_reference
from a2a_console.times import moment
from a2a_tasks.access import switch_cache
from a2a_tasks.audit import actor
from a2a_tasks.operations.cancel_task import cancel_by_key
from a2a_tasks.protocol.binding import Binding
from a2a_tasks.protocol.dialects import DIALECTS
from a2a_tasks.protocol.errors import Overloaded, TaskNotCancelable, TaskNotFound
from a2a_tasks.protocol.values import TaskState

__all__ = ["Command"]

#: The options that are fields of a Selection under the same name.
PLAIN = (
    *("agent", "tenant", "owner", "context", "dialect"),
    *("binding", "mark", "id_prefix", "text", "stuck"),
)
#: The columns of the table with their widths.
TABLE = {"id": 36, "state": 14, "agent": 16, "owner": 20, "created_at": 24, "opening": 60}
#: The words for the party that has to act, before the text of what happens next.
NEEDS = {Needs.NOBODY: "", Needs.CLIENT: "(its client) ", Needs.OPERATOR: "(you) "}


class Command(BaseCommand):
    """Subcommands `tasks`, `cancel` and `why`."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add a parser for each subcommand."""
        words = parser.add_subparsers(dest="subcommand", metavar="subcommand", required=True)
        tasks = words.add_parser("tasks", help="list tasks, newest first")
        tasks.add_argument(
            "search", nargs="?", help="a task's id or its beginning, a context's id, or words"
        )
        _add_filters(tasks)
        tasks.add_argument("--lines", type=int, default=50, help="most lines (default 50)")
        tasks.add_argument("--format", choices=["table", "json", "csv"], default="table")
        cancel = words.add_parser("cancel", help="cancel tasks, by ids or by filters")
        cancel.add_argument("ids", nargs="*", metavar="ID", help="ids of tasks, or numbers (#17)")
        _add_filters(cancel)
        cancel.add_argument("--yes", action="store_true", help="cancel without asking")
        why = words.add_parser("why", help="explain a stuck task: the reason and the next step")
        why.add_argument("task", help="the id of the task, or its number (#17)")

    def handle(self, *args: Any, subcommand: str, **options: Any) -> None:
        """Run the subcommand. A closed pipe (`| head`) ends it quietly."""
        run = {"tasks": self.list_tasks, "cancel": self.cancel, "why": self.explain}[subcommand]
        try:
            run(options)
        except BrokenPipeError:
            devnull = os.open(os.devnull, os.O_WRONLY)  # for Python's last flush
            os.dup2(devnull, sys.stdout.fileno())
        except Overloaded as fault:
            raise CommandError(f"The database did not do it: {fault}") from fault

    def list_tasks(self, options: dict[str, Any]) -> None:
        """Write a line for each task."""
        wanted = replace(_selection(options), search=options["search"])
        lines = max(0, options["lines"])
        records = (record for batch in whole(wanted) for record in batch)
        found = list(islice(records, lines + 1))
        shown = found[:lines]
        if options["format"] == "json":
            self.stdout.write(json_text(shown), ending="")
        elif options["format"] == "csv":
            self.stdout.write(csv_text(shown, heading=True), ending="")
        else:
            for row in ({name: name for name in TABLE}, *shown):
                cells = (_printable(str(row[name]))[:w].ljust(w) for name, w in TABLE.items())
                self.stdout.write("  ".join(cells).rstrip())
        if len(found) > lines:
            self.stderr.write("There are more: --lines.")

    def cancel(self, options: dict[str, Any]) -> None:
        """Cancel tasks one by one, and write the results. The command may be interrupted at any time."""
        keys = _keys(options)
        if not keys or not self._is_agreed(len(keys), options):
            self.stdout.write("Nothing was done.")
            return
        counts: Counter[str] = Counter()
        with Progress(self.stderr, len(keys), "tasks") as shown:
            for done, key in enumerate(keys, 1):
                counts[_cancel(key)] += 1
                shown(done)
        for what, count in counts.items():
            self.stdout.write(f"{what}: {count}")

    def _is_agreed(self, count: int, options: dict[str, Any]) -> bool:
        """Ask for confirmation, unless --yes is given. Raises CommandError without a terminal."""
        question = f"Cancel {count} tasks? A canceled task is final."
        if options["yes"]:
            return True
        if not sys.stdin.isatty():
            raise CommandError(f"{question} Nothing was done: say --yes.")
        self.stdout.write(f"{question} [y/N] ", ending="")
        self.stdout.flush()
        return sys.stdin.readline().strip().lower() in {"y", "yes"}

    def explain(self, options: dict[str, Any]) -> None:
        """Diagnose every task of that id: several owners may have used it."""
        keys = _find_keys([options["task"]])
        switch_cache.refresh()  # announced agents
        for key in keys:
            if len(keys) > 1:
                self.stdout.write(f"Task #{key}:")
            found = diagnose(key)
            for reason in (found, *found.also):
                when = f" ({moment(reason.at)})" if reason.at else ""
                self.stdout.write(_printable(f"[{reason.kind}] {reason.sentence}"))
                self.stdout.write(_printable(f"  Next: {NEEDS[reason.needs]}{reason.next}{when}"))


def _add_filters(parser: ArgumentParser) -> None:
    """Add the filters of the list in the admin."""
    add = parser.add_argument
    several = "a state, or `unfinished`; may be given several times"
    add("--state", type=_states, action="append", default=[], help=several)
    add("--agent", metavar="SLUG")
    add("--tenant", help="the exact name of a tenant; empty = without a tenant")
    add("--owner", metavar="PRINCIPAL", help="the owner or the creator of the tasks")
    add("--context", metavar="ID")
    add("--dialect", choices=sorted(DIALECTS))
    add("--binding", choices=[binding.value for binding in Binding])
    add("--mark", choices=[mark.name for mark in MARKS.values()], help="the mark of the tasks")
    add("--stuck", nargs="?", const="any", choices=["any", *KINDS], help="the reason of the wait")
    add("--id-prefix", metavar="TEXT", help="the first characters of a task's id")
    add("--text", metavar="WORDS", help="words of the first message")
    add("--since", type=moments.moment, metavar="TIME", help="created at or after this time")
    add("--until", type=moments.moment, metavar="TIME", help="created before this time")


def _states(text: str) -> frozenset[TaskState]:
    if text not in STATES:
        raise ArgumentTypeError(f"{text!r} is none of: {', '.join(STATES)}")
    return STATES[text]


def _selection(options: dict[str, Any]) -> Selection:
    return Selection(
        states=frozenset().union(*options["state"]),
        made_after=options["since"],
        made_before=options["until"],
        **{name: options[name] for name in PLAIN},
    )


def _keys(options: dict[str, Any]) -> list[int]:
    """Return the tasks to cancel, newest first; filters find only those that have not ended. Raises CommandError."""
    wanted = _selection(options)
    if bool(options["ids"]) == wanted.narrows:
        raise CommandError("Say which: ids, or filters.")
    if options["ids"]:
        return _find_keys(options["ids"])
    states = UNFINISHED & wanted.states if wanted.states else UNFINISHED
    return list(keys_of(wanted.among(states))) if states else []


def _find_keys(names: list[str]) -> list[int]:
    """Return the primary keys of tasks by their ids or numbers. Raises CommandError if one does not exist."""
    found = {name: parse_task_reference(name) for name in names}
    missing = ", ".join(name for name, keys in found.items() if not keys)
    if missing:
        raise CommandError(f"There is no task called {_printable(missing)}. Nothing was done.")
    return list(dict.fromkeys(key for keys in found.values() for key in keys))


def _cancel(key: int) -> str:
    try:
        async_to_sync(cancel_by_key)(key, by=actor())
    except TaskNotCancelable:
        return "Already ended"
    except TaskNotFound:
        return "No longer exists"
    return "Canceled"


def _printable(text: str) -> str:
    """Return the text without control characters: some of it is untrusted, and terminals obey them."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text)
