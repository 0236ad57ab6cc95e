"""Bulk actions on tasks: a page of confirmation, then one task after the other."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from asgiref.sync import async_to_sync
from django.db.models import QuerySet

from a2a_console.rerun.run_again import Again, CannotRunAgain, run_again
from a2a_console.search.selection import Selection, walk
from a2a_tasks.models import Task
from a2a_tasks.protocol.errors import Overloaded, TaskNotFound
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import TaskState

__all__ = ["AGAIN", "AT_ONCE", "CANCEL", "DEEDS", "Deed", "Plan", "Rerun", "plan", "rerun"]

#: The largest number of tasks of one action; each has its own transaction.
AT_ONCE = 1_000
#: The largest number of reasons in messages.
REASONS = 5


@dataclass(frozen=True, kw_only=True)
class Deed:
    """An action on tasks."""

    name: str
    #: The title of the page of confirmation.
    title: str
    #: The label of the button, before the number.
    verb: str
    #: The consequences, for the operator.
    text: str
    #: Warnings to read before the confirmation.
    warnings: tuple[str, ...]
    #: The reason why other tasks are left alone, after their number.
    impossible: str
    #: The states in which a task allows it.
    states: frozenset[TaskState]


CANCEL = Deed(
    name="cancel",
    title="Cancel tasks?",
    verb="Cancel",
    text="Each task is canceled immediately and its client is notified; then its agent is stopped.",
    warnings=("This cannot be undone. A canceled task can only be run again as a new task.",),
    impossible="cannot be cancelled: they have already finished",
    states=frozenset(TaskState) - TERMINAL,
)
AGAIN = Deed(
    name="run-again",
    title="Run tasks again?",
    verb="Run again",
    text="Each task is started again as a new task with the same owner, context and first message. "
    "The old tasks do not change, and the new ones refer to them. Webhooks are not copied.",
    warnings=(
        "The agents may repeat side effects: completed steps of the old tasks are not reused.",
        "The new tasks can be cancelled but not removed.",
    ),
    impossible="cannot be run again: they have not finished",
    states=TERMINAL,
)
DEEDS = {deed.name: deed for deed in (CANCEL, AGAIN)}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The tasks of an action."""

    keys: list[int]
    #: State, agent and number of tasks.
    parts: list[tuple[str, str, int]]
    #: True if there are more than AT_ONCE.
    more: bool
    #: Selected tasks whose state does not allow it, as far as they were read.
    others: int
    #: Sent with the form, so that the action runs once.
    nonce: str = field(default_factory=lambda: uuid.uuid4().hex)


def plan(deed: Deed, rows: QuerySet[Task], selection: Selection = Selection()) -> Plan:  # noqa: B008 - frozen
    """Return the tasks of the selection that the action applies to: the newest AT_ONCE."""
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
                return Plan(keys=keys, parts=_count_parts(parts), more=True, others=others)
    return Plan(keys=keys, parts=_count_parts(parts), more=False, others=others)


def _count_parts(parts: Counter[tuple[str, str]]) -> list[tuple[str, str, int]]:
    return [(state, agent, count) for (state, agent), count in parts.most_common()]


@dataclass
class Rerun:
    """The result of running tasks again: pairs of old and new tasks, and counts of the others with the reasons."""

    again: list[tuple[Task, Again]] = field(default_factory=list)
    before: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    gone: int = 0
    untried: int = 0


def rerun(tasks: Iterable[Task], nonce: str, record: Callable[[Task, Again], None]) -> Rerun:
    """Run each task again and record it at once. Once the host is overloaded or the database away, stop trying."""
    result = Rerun()
    for task in tasks:
        if result.untried:
            result.untried += 1
            continue
        try:
            again = async_to_sync(run_again)(task.pk, nonce=nonce)
        except CannotRunAgain as why:
            result.reasons[str(why)] += 1
        except TaskNotFound:
            result.gone += 1
        except Overloaded:
            result.untried += 1
        else:
            result.before += again.before
            result.again.append((task, again))
            if not again.before:
                record(task, again)
    return result
