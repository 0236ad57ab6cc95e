"""History, ledger and dump, arranged so that an invariant is a few lines: by task, by stream, by run."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from lab.faultlab import folding
from lab.faultlab.dump import (
    ArtifactRow,
    CallRow,
    Dump,
    EventRow,
    KeyRow,
    MessageRow,
    RunRow,
    StepRow,
    TaskRow,
)
from lab.faultlab.history import Record

__all__ = ["ENDED", "WAITING", "Evidence", "Limits", "Stream", "attempts_in"]

ENDED = frozenset(
    {
        "TASK_STATE_COMPLETED",
        "TASK_STATE_FAILED",
        "TASK_STATE_CANCELED",
        "TASK_STATE_REJECTED",
    }
)
WAITING = frozenset({"TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED"})
_ATTEMPT = re.compile(r"(?:^|;)a(\d+):")

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


_DONE = frozenset({"TASK_STATE_COMPLETED"})
#: In which states tasks of the lab's shapes may be left; one whose cancel was asked for may be cancelled, too.
WANTS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(
        ("short", "stream", "medium", "long", "thread", "steps", "delegate", "blocking"), _DONE
    ),
    **dict.fromkeys(("marathon", "large", "park", "tell", "tree"), _DONE),
    # Its own fault, if it comes to nothing.
    **dict.fromkeys(("locking", "hungry"), _DONE | {"TASK_STATE_FAILED"}),
    "ask": _DONE | {"TASK_STATE_INPUT_REQUIRED"},
    "careful": _DONE,
    "forever": frozenset(),
    "poison": frozenset({"TASK_STATE_FAILED"}),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What is promised, in seconds, and what was asked of whom."""

    #: From the death of a process to the next attempt of what it was carrying.
    recovery: float = 10.0
    #: From the acknowledged cancel to the agent's last sign of life, if nothing is broken.
    cancel: float = 1.0
    #: The same when something was: a hint may be lost, the worker stopped.
    forced: float = 10.0
    lease: float = 6.0
    #: How often a run may be tried; None = that is not checked.
    max_attempts: int | None = None
    #: The machine is known to keep up: whoever is not hurt keeps its runs.
    steady: bool = False
    #: Final states by shape; tasks of other shapes may end or wait as they like.
    wants: Mapping[str, frozenset[str]] = field(default_factory=lambda: WANTS)
    #: Agents that must not act twice (`after_crash = "fail"`), by slug; they take no durable steps.
    at_most_once: frozenset[str] = frozenset({"lab-careful"})


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream: how it was opened, then frames and notices in order, and how it was closed."""

    opened: Record
    shown: Sequence[Record]
    closed: Record | None

    @property
    def task(self) -> str | None:
        """The task's id, told by its frames if not asked for by id."""
        named = [frame["task"] for frame in self.shown if frame.get("task")]
        return self.opened.get("task") or (named[0] if named else None)


def grouped(rows: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Rows by what they have in common, in their order."""
    found: defaultdict[K, list[T]] = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return dict(found)


def attempts_in(event: EventRow) -> list[int]:
    """The attempts that spoke in an event: agents of the lab say `a<attempt>:` before everything."""
    if event.kind not in {folding.STATUS, folding.ARTIFACT}:
        return []
    body = folding.said(event)
    parts = (body.get("artifact") or body.get("status", {}).get("message") or {}).get("parts", [])
    return [int(found) for part in parts for found in _ATTEMPT.findall(part.get("text", ""))]


class Evidence:
    """Everything known of one episode."""

    def __init__(
        self,
        history: Sequence[Record],
        ledger: Sequence[Record],
        dump: Dump,
        limits: Limits | None = None,
    ) -> None:
        self.history, self.ledger, self.dump = history, ledger, dump
        self.limits = limits or Limits()

    def seen(self, *what: str) -> list[Record]:
        """The records of these kinds, of the history and of the ledger."""
        return [record for name in what for record in self._by_what.get(name, ())]

    @cached_property
    def _by_what(self) -> dict[str, list[Record]]:
        return grouped([*self.history, *self.ledger], lambda record: record.what)

    @cached_property
    def end(self) -> float:
        """The moment of the last record."""
        return max((record.t for record in [*self.history, *self.ledger]), default=0.0)

    @cached_property
    def tasks(self) -> dict[str, TaskRow]:
        """Tasks by the id clients know."""
        return {task.id: task for task in self.dump.tasks}

    @cached_property
    def _events(self) -> dict[int, list[EventRow]]:
        return grouped(self.dump.events, lambda row: row.task)

    @cached_property
    def _runs(self) -> dict[int, list[RunRow]]:
        return grouped(self.dump.runs, lambda row: row.task)

    @cached_property
    def _steps(self) -> dict[int, list[StepRow]]:
        return grouped(self.dump.steps, lambda row: row.task)

    @cached_property
    def _artifacts(self) -> dict[int, list[ArtifactRow]]:
        return grouped(self.dump.artifacts, lambda row: row.task)

    @cached_property
    def _messages(self) -> dict[int, list[MessageRow]]:
        return grouped(self.dump.messages, lambda row: row.task)

    def log(self, task: TaskRow) -> list[EventRow]:
        """The task's events in order."""
        return self._events.get(task.task, [])

    def runs(self, task: TaskRow) -> list[RunRow]:
        """The task's runs, the oldest first."""
        return self._runs.get(task.task, [])

    def steps(self, task: TaskRow) -> list[StepRow]:
        """The task's durable steps."""
        return self._steps.get(task.task, [])

    def artifacts(self, task: TaskRow) -> list[ArtifactRow]:
        """The task's artifacts by position."""
        return self._artifacts.get(task.task, [])

    def messages(self, task: TaskRow) -> list[MessageRow]:
        """The task's messages."""
        return self._messages.get(task.task, [])

    @cached_property
    def _keys(self) -> dict[int, list[KeyRow]]:
        return grouped(sorted(self.dump.keys, key=lambda row: row.number), lambda row: row.task)

    def keys(self, task: TaskRow) -> list[KeyRow]:
        """The keys of the task's messages, in the order of the messages."""
        return self._keys.get(task.task, [])

    def run_at(self, task: TaskRow, moment: float) -> RunRow | None:
        """The run that was the task's turn at a moment: the oldest that had not ended, or else the newest."""
        begun = [run for run in self.runs(task) if run.created_at <= moment]
        open_ = [run for run in begun if run.ended_at is None or run.ended_at >= moment]
        return next(iter(open_ or begun[::-1]), None)

    def run_of(self, task: TaskRow, began: Record) -> RunRow | None:
        """The run an agent began, if it knew; else by the moment."""
        named = [run for run in self.runs(task) if run.run == began.get("run")]
        return named[0] if named else self.run_at(task, began.t)

    @cached_property
    def acts(self) -> dict[str, dict[str, list[Record]]]:
        """What agents wrote, by task and by kind: `began`, `effect`, `tick`, `stopped`."""
        by_task = grouped(self.ledger, lambda record: str(record.get("task")))
        return {task: grouped(records, lambda r: r.what) for task, records in by_task.items()}

    def did(self, task: TaskRow, what: str) -> list[Record]:
        """What agents wrote of one kind for a task, in order."""
        return self.acts.get(task.id, {}).get(what, [])

    @cached_property
    def streams(self) -> list[Stream]:
        """All streams, in the order they were opened."""
        kinds = ("frame", "notice")
        shown = grouped((r for r in self.history if r.what in kinds), lambda r: str(r["stream"]))
        closed = {str(r["stream"]): r for r in self.seen("closed")}
        return [
            Stream(opened, shown.get(name, []), closed.get(name))
            for opened in self.seen("opened")
            for name in [str(opened["stream"])]
        ]

    def of(self, what: str, task: str) -> list[Record]:
        """The records of one kind about a task."""
        return [record for record in self.seen(what) if record.get("task") == task]

    @cached_property
    def _callers(self) -> dict[int, CallRow]:
        return {call.task: call for call in self.dump.calls}

    def call_of(self, task: TaskRow) -> CallRow | None:
        """The call by which an agent began the task; None if a client did."""
        return self._callers.get(task.task)

    @cached_property
    def _called(self) -> dict[int, list[TaskRow]]:
        rows = {task.task: task for task in self.dump.tasks}
        calls = [call for call in self.dump.calls if call.task in rows]
        found = grouped(calls, lambda call: call.parent)
        return {parent: [rows[call.task] for call in calls] for parent, calls in found.items()}

    def called(self, task: TaskRow) -> list[TaskRow]:
        """The tasks that the agent of a task has begun."""
        return self._called.get(task.task, [])

    @cached_property
    def asked_to_cancel(self) -> set[str]:
        """The tasks that a client wanted cancelled, and those that they had called."""
        found = {str(record["task"]) for record in self.seen("cancelling", "cancelled")}
        below = [self.tasks[task] for task in found if task in self.tasks]
        while below:
            called = self.called(below.pop())
            found |= {task.id for task in called}
            below += called
        return found

    @cached_property
    def kills(self) -> list[Record]:
        """The faults that took a process from its runs: it was killed, or frozen for longer than a lease."""
        frozen = 1.5 * self.limits.lease
        return [
            fault
            for fault in self.seen("fault")
            if fault.get("action") == "kill"
            or (fault.get("action") == "stop" and self.woken(fault) - fault.t > frozen)
        ]

    def woken(self, fault: Record) -> float:
        """The moment at which a stopped process went on."""
        woken = (
            other.t
            for other in self.seen("fault")
            if other.get("action") == "cont" and other.get("pid") == fault.get("pid")
        )
        return min((moment for moment in woken if moment >= fault.t), default=math.inf)

    def mended(self, since: float, until: float) -> float:
        """The moment from which recovery could begin: the end of the last outage that touches this span.

        Redis is no excuse: without it everything is found by looking.
        """
        moment = since
        for fault in self.seen("fault"):
            if fault.get("process") == "redis":
                continue
            ends = [m.t for m in self.seen("mended") if m.get("name") == fault.get("name")]
            after = min((end for end in ends if end >= fault.t), default=None)
            if after is not None and fault.t <= until and after >= since:
                moment = max(moment, min(after, until))
        return moment

    @cached_property
    def sent_shapes(self) -> dict[str, Any]:
        """Shape by key."""
        return {str(record["key"]): record.get("shape") for record in self.seen("sent")}
