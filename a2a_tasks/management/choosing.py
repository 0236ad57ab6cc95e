"""Tasks on a command line: by names, or by the filters that the list has; and how they are asked about and shown."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from a2a_tasks.management.moments import moment
from a2a_tasks.protocol.binding import Binding
from a2a_tasks.protocol.dialects import DIALECTS
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.marks import marks
from a2a_tasks.store.named import named
from a2a_tasks.store.selection import Selection
from a2a_tasks.store.sheet import keys_of

__all__ = ["add_choice", "add_filters", "agreed", "chosen", "printable", "selection"]

STATES = {state.word: frozenset({state}) for state in TaskState}
STATES["unfinished"] = frozenset(TaskState) - TERMINAL
#: Options that are fields of a Selection as they are.
PLAIN = ("agent", "tenant", "owner", "context", "dialect", "binding", "mark", "id_prefix", "text")


def _states(text: str) -> frozenset[TaskState]:
    if text not in STATES:
        raise ArgumentTypeError(f"{text!r} is none of: {', '.join(STATES)}")
    return STATES[text]


def add_filters(parser: ArgumentParser) -> None:
    """The filters of the list."""
    add = parser.add_argument
    add("--state", type=_states, action="append", default=[], help="may come again; `unfinished`")
    add("--agent", metavar="SLUG")
    add("--tenant", help="exactly; empty = of none")
    add("--owner", metavar="PRINCIPAL", help="whose it is, or who made it")
    add("--context", metavar="ID")
    add("--dialect", choices=sorted(DIALECTS))
    add("--binding", choices=[binding.value for binding in Binding])
    add("--mark", choices=[mark.name for mark in marks()], help="what is known of its webhooks")
    add("--id-prefix", metavar="TEXT", help="what the id begins with")
    add("--text", metavar="WORDS", help="words that its first message begins with")
    add("--since", type=moment, metavar="TIME", help="made from then on")
    add("--until", type=moment, metavar="TIME", help="made before then")


def selection(options: dict[str, Any]) -> Selection:
    """What the filters ask."""
    states: frozenset[TaskState] = frozenset().union(*options["state"])
    plain = {name: options[name] for name in PLAIN}
    spans = {"made_after": options["since"], "made_before": options["until"]}
    return Selection(states=states, **plain, **spans)


def add_choice(parser: ArgumentParser) -> None:
    """Ids, or filters, and a yes."""
    parser.add_argument("ids", nargs="*", metavar="ID", help="ids of tasks, or numbers (#17)")
    add_filters(parser)
    parser.add_argument("--yes", action="store_true", help="do not ask")


def chosen(options: dict[str, Any], states: frozenset[TaskState]) -> list[int]:
    """The keys of those tasks, newest first; by filters only those in these states. Raises CommandError."""
    wanted = selection(options)
    if bool(options["ids"]) == wanted.narrows:
        raise CommandError("Say which: ids, or filters.")
    if options["ids"]:
        return list(dict.fromkeys(_named(options["ids"])))
    narrowed = states & wanted.states if wanted.states else states
    return list(keys_of(wanted.among(narrowed))) if narrowed else []


def _named(names: list[str]) -> Iterator[int]:
    found = {name: named(name) for name in names}
    missing = [name for name, keys in found.items() if not keys]
    if missing:
        raise CommandError(
            f"There is no task called {printable(', '.join(missing))}. Nothing was done."
        )
    for keys in found.values():
        yield from keys


def agreed(command: BaseCommand, options: dict[str, Any], question: str) -> bool:
    """Does whoever sits there say yes? Raises CommandError where nobody does, unless --yes said so."""
    if options["yes"]:
        return True
    if not sys.stdin.isatty():
        raise CommandError(f"{question} Nothing was done: say --yes.")
    command.stdout.write(f"{question} [y/N] ", ending="")
    command.stdout.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def printable(text: str) -> str:
    """Strangers wrote some of it; a terminal obeys what cannot be seen."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text)
