"""Doing something to many tasks: a page that says what will happen, and then one task after the other."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from asgiref.sync import async_to_sync
from django.db.models import QuerySet

from a2a_tasks.models import Task
from a2a_tasks.operations.run_again import Again, CannotRunAgain, run_again
from a2a_tasks.protocol.errors import Overloaded, TaskNotFound
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.selection import Selection, walk

__all__ = ["AGAIN", "AT_ONCE", "CANCEL", "DEEDS", "Deed", "Plan", "Rerun", "planned", "rerun"]

#: Tasks one action is for; each is a transaction of its own.
AT_ONCE = 1_000
#: Reasons that are told.
REASONS = 5


@dataclass(frozen=True, kw_only=True)
class Deed:
    """Something that is done to tasks."""

    name: str
    #: Of the page that asks.
    title: str
    #: On its button, before the number.
    verb: str
    #: What will happen, to people who decide.
    text: str
    #: What speaks against it.
    warnings: tuple[str, ...]
    #: To tasks in these states; others are left alone.
    states: frozenset[TaskState]


CANCEL = Deed(
    name="cancel",
    title="Cancel tasks?",
    verb="Cancel",
    text="Each task becomes canceled at once, for its client, too; then its agent is stopped.",
    warnings=(
        "This cannot be undone: a cancelled task is final. It may be run again, as a new task.",
    ),
    states=frozenset(TaskState) - TERMINAL,
)
AGAIN = Deed(
    name="run-again",
    title="Run tasks again?",
    verb="Run again",
    text="Each begins once more as a new task, of the same owner and in the same context, by its first message. "
    "The old tasks stay as they are, and the new ones refer to them. Webhooks are not taken over.",
    warnings=(
        "What the agents did before they may do twice: steps of the old tasks are not remembered.",
        "The new tasks can be cancelled, but not taken back.",
    ),
    states=TERMINAL,
)
DEEDS = {deed.name: deed for deed in (CANCEL, AGAIN)}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a deed would be done to."""

    keys: list[int]
    #: Of how many in each state with each agent.
    parts: list[tuple[str, str, int]]
    #: There are more than AT_ONCE.
    more: bool
    #: Selected ones that are in no state for it; counted as far as was looked.
    others: int
    #: Told with the wish, so that it is granted once.
    nonce: str = field(default_factory=lambda: uuid.uuid4().hex)


def planned(deed: Deed, rows: QuerySet[Task], selection: Selection = Selection()) -> Plan:  # noqa: B008 - frozen
    """Which of these tasks it would be done to, of those that are meant: the newest AT_ONCE."""
    keys: list[int] = []
    parts: Counter[tuple[str, str]] = Counter()
    others = 0
    for tasks in walk(rows, selection):
        for task in tasks:
            if TaskState(task.state) not in deed.states:
                others += 1
            elif len(keys) < AT_ONCE:
                keys.append(task.pk)
                parts[TaskState(task.state).word, task.agent] += 1
            else:
                return Plan(keys=keys, parts=_told(parts), more=True, others=others)
    return Plan(keys=keys, parts=_told(parts), more=False, others=others)


def _told(parts: Counter[tuple[str, str]]) -> list[tuple[str, str, int]]:
    return [(state, agent, count) for (state, agent), count in parts.most_common()]


@dataclass
class Rerun:
    """What became of them: those that run again, each with the old one, and why others do not."""

    again: list[tuple[Task, Again]] = field(default_factory=list)
    before: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    gone: int = 0
    untried: int = 0


def rerun(tasks: Iterable[Task], nonce: str, record: Callable[[Task, Again], None]) -> Rerun:
    """Run each again, and record it at once. When the host is too busy, or the database away, the rest is left alone."""
    told = Rerun()
    for task in tasks:
        if told.untried:
            told.untried += 1
            continue
        try:
            again = async_to_sync(run_again)(task.pk, nonce=nonce)
        except CannotRunAgain as why:
            told.reasons[str(why)] += 1
        except TaskNotFound:
            told.gone += 1
        except Overloaded:
            told.untried += 1
        else:
            told.before += again.before
            told.again.append((task, again))
            if not again.before:
                record(task, again)
    return told
