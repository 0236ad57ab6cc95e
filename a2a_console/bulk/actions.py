"""Bulk actions on tasks: the tasks that each selects, and the change of one task after the other."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

import msgspec
from asgiref.sync import async_to_sync
from django.db.models import QuerySet

from a2a_console.rerun.run_again import Again, CannotRunAgain, run_again
from a2a_console.search.bounded_rows import COUNTED
from a2a_console.search.selection import UNFINISHED, Selection, walk
from a2a_console.search.stuck_tasks import KINDS
from a2a_console.search.task_flags import MARKS
from a2a_tasks.models import Task
from a2a_tasks.operations import cancel_task
from a2a_tasks.protocol.errors import Overloaded, TaskNotCancelable, TaskNotFound
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import TaskState

__all__ = ["AGAIN", "AT_ONCE", "CANCEL", "ACTIONS", "BulkAction", "Choice", "Outcome", "Plan"]
__all__ += ["act", "act_on", "plan"]

#: The largest number of tasks of one request of the API; each has its own transaction.
AT_ONCE = 1_000


@dataclass(frozen=True, kw_only=True)
class BulkAction:
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
    #: The permission of the user.
    permission: str


CANCEL = BulkAction(
    name="cancel",
    title="Cancel tasks?",
    verb="Cancel",
    text="Each task is canceled immediately and its client is notified; then its agent is stopped.",
    warnings=("This cannot be undone. A canceled task can only be run again as a new task.",),
    impossible="cannot be canceled: they have already finished",
    states=UNFINISHED,
    permission="a2a_tasks.change_task",
)
AGAIN = BulkAction(
    name="run-again",
    title="Run tasks again?",
    verb="Run again",
    text="Each task is started again as a new task with the same owner, context and first message. "
    "The old tasks do not change, and the new ones refer to them. Webhooks are not copied.",
    warnings=(
        "The agents may repeat side effects: completed steps of the old tasks are not reused.",
        "The new tasks can be canceled but not removed.",
    ),
    impossible="cannot be run again: they have not finished",
    states=TERMINAL,
    permission="a2a_tasks.run_again_task",
)
ACTIONS = {action.name: action for action in (CANCEL, AGAIN)}


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The tasks of a bulk job: a selection, or some of it by their keys. The number is up to COUNTED."""

    selection: Selection
    keys: Annotated[list[int], msgspec.Meta(max_length=COUNTED)] | None = None
    found: Annotated[int, msgspec.Meta(ge=0, le=COUNTED)] = 0
    more: bool = False

    def write(self) -> str:
        """Return the choice as JSON."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def read(cls, text: str) -> Choice:
        """Return the choice in JSON. Raises msgspec.DecodeError.

        A member, mark or reason that this release does not know is an error, too: without it, the job would find other tasks.
        """
        choice: Choice = msgspec.json.decode(text, type=cls)
        given, known = msgspec.json.decode(text), msgspec.to_builtins(choice)
        unknown = {*given, *given["selection"]} - {*known, *known["selection"]}
        if unknown:
            raise msgspec.ValidationError(f"unknown members: {', '.join(sorted(unknown))}")
        wanted = choice.selection
        if wanted.mark not in {None, *MARKS} or wanted.stuck not in {None, "any", *KINDS}:
            raise msgspec.ValidationError(f"unknown values: {wanted.mark or wanted.stuck}")
        return choice


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The tasks of an action."""

    keys: list[int]
    #: State, agent and number of tasks.
    parts: list[tuple[str, str, int]]
    #: True if there are more than the limit.
    more: bool
    #: Selected tasks whose state does not allow it, as far as they were read.
    others: int
    #: Sent with the form, so that the action runs once.
    nonce: str = field(default_factory=lambda: uuid.uuid4().hex)


def plan(
    action: BulkAction,
    rows: QuerySet[Task],
    selection: Selection = Selection(),  # noqa: B008 - frozen
    limit: int = 0,
) -> Plan:
    """Return the tasks of the selection that the action applies to: the newest `limit`, or AT_ONCE."""
    keys: list[int] = []
    parts: Counter[tuple[str, str]] = Counter()
    others = 0
    for tasks in walk(rows, selection):
        for task in tasks:
            if TaskState(task.state) not in action.states:
                others += 1
            elif len(keys) < (limit or AT_ONCE):
                keys.append(task.pk)
                parts[TaskState(task.state).word, task.agent] += 1
            else:
                return Plan(keys=keys, parts=_count_parts(parts), more=True, others=others)
    return Plan(keys=keys, parts=_count_parts(parts), more=False, others=others)


def _count_parts(parts: Counter[tuple[str, str]]) -> list[tuple[str, str, int]]:
    return [(state, agent, count) for (state, agent), count in parts.most_common()]


class Outcome(NamedTuple):
    """The outcome for one task: "done", "ended" (before), "gone", or "refused" for the reason in the text."""

    task: int
    kind: str
    text: str
    #: The new task of one that was run again.
    again: Again | None = None


def act(action: BulkAction, task: int, *, by: str, nonce: str) -> Outcome:
    """Do the action to one task, in a transaction of its own. Raises Overloaded."""
    try:
        if action is CANCEL:
            async_to_sync(cancel_task.cancel_by_key)(task, by=by)
            return Outcome(task, "done", "canceled")
        again = async_to_sync(run_again)(task, nonce=nonce)
        return Outcome(task, "done", f"run again as {again.id}", again)
    except TaskNotCancelable:  # it ended while the operator looked at the page
        return Outcome(task, "ended", "ended before")
    except TaskNotFound:
        return Outcome(task, "gone", "gone")
    except CannotRunAgain as why:
        return Outcome(task, "refused", str(why))


def act_on(
    action: BulkAction, tasks: Collection[int], *, by: str, nonce: str = ""
) -> tuple[list[Outcome], int]:
    """Do the action to each task. Once the host is overloaded or the database away, stop: return how many were not tried."""
    outcomes: list[Outcome] = []
    with suppress(Overloaded):
        for task in tasks:
            outcomes.append(act(action, task, by=by, nonce=nonce))
    return outcomes, len(tasks) - len(outcomes)
