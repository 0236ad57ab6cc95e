"""The spans of a task: its waits for a slot, attempts, steps, waits, questions, calls of other agents, and webhooks."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from django.db.models import F

from a2a_push.models import Attempt
from a2a_tasks.agents.steps import FAILED, FAILURES
from a2a_tasks.models import Delegation, Event, Run, RunLine, RunStatus, Step, Task, Usage
from a2a_tasks.protocol.lifecycle import INTERRUPTED, TERMINAL, EventKind
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.segments import DIED, PARKED, find_last_begin, read_segments
from a2a_tasks.telemetry.step_span import find_tool

__all__ = ["MOST", "Kind", "Span", "read_spans"]

#: Most spans of one source: the newest ones.
MOST = 300
#: The steps in which adapters of frameworks call models.
_MODEL = re.compile(r"(?:^|/)model#\d+$")


#: The source of the answer that a task waits for, by its state.
ASKED = {TaskState.INPUT_REQUIRED: "the client", TaskState.AUTH_REQUIRED: "credentials"}


class Kind(StrEnum):
    """The kinds of spans."""

    QUEUE = "queued"
    ATTEMPT = "attempt"
    WAIT = "wait"
    STEP = "step"
    TOOL = "tool"
    MODEL = "model"
    PERSON = "wait for"
    CALL = "call"
    WEBHOOK = "webhook"


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """A time of a task, by the database's clock."""

    kind: Kind
    label: str
    #: None = it was not recorded, as before this release.
    began: datetime | None
    #: None = it is under way.
    ended: datetime | None
    #: Its result, in words.
    note: str = ""
    is_fault: bool = False
    #: The key of its run, of the task that was called, or of the delivery; 0 = none.
    of: int = 0
    #: The whole name of its step, or of that of the call; empty = it is none.
    step: str = ""

    @property
    def key(self) -> str:
        """A short name, which it keeps when it ends."""
        parts = (self.kind, self.of, self.step or self.label, self.began or self.ended)
        return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:12]

    @property
    def is_idle(self) -> bool:
        """True if nobody works meanwhile."""
        return self.kind in {Kind.QUEUE, Kind.WAIT, Kind.PERSON}


def read_spans(
    task: Task, *, shows_runs: bool, shows_faults: bool, shows_webhooks: bool
) -> list[Span]:
    """Return the spans of a task: those of runs, the exceptions of their steps, and those of webhooks only if they are to be shown."""
    found: list[Span] = []
    if shows_runs:
        runs = Run.objects.filter(task_id=task.pk).defer("error", "request", "token")
        for run in reversed(runs.order_by("-pk")[:MOST]):
            found += _list_of_run(run)
        found += sorted(
            [*_list_steps(task), *_list_failed_steps(task, shows_faults=shows_faults)], key=_order
        )
    found += [*_list_questions(task), *_list_calls(task)]
    if shows_webhooks:
        found += _list_webhooks(task)
    return found


def _order(span: Span) -> datetime:
    return span.began or span.ended or datetime.max.replace(tzinfo=UTC)


def _list_of_run(run: Run) -> Iterator[Span]:
    """Yield the attempts of a run, and what it waited for between them."""
    free, waits_in = run.created_at, ""
    for past in read_segments(run.past):
        yield _between(run, free, past.began, waits_in)
        label = f"attempt {past.attempt} on {past.worker}"
        how = f"{past.how} in {past.step}" if past.step else past.how
        yield Span(
            kind=Kind.ATTEMPT,
            label=label,
            began=past.began,
            ended=max(past.began, past.ended),
            note=how,
            is_fault=past.how == DIED,
            of=run.pk,
        )
        free = max(past.began, past.ended)
        waits_in = (past.step or "budget") if past.how == PARKED else ""
    if (begun := find_last_begin(run)) is None:
        yield _between(run, free, run.ended_at, waits_in)
        return
    yield _between(run, free, begun, waits_in)
    yield Span(
        kind=Kind.ATTEMPT,
        label=f"attempt {run.attempt} on {run.worker}",
        began=begun,
        ended=run.ended_at,
        note=run.status,
        is_fault=run.status == RunStatus.FAILED,
        of=run.pk,
    )


def _between(run: Run, began: datetime, ended: datetime | None, step: str) -> Span:
    """Return the time before an attempt: the run was parked in a step, or waited for a slot."""
    kind, label = (Kind.WAIT, step) if step else (Kind.QUEUE, f"queue {run.queue}")
    return Span(kind=kind, label=label, began=began, ended=ended, of=run.pk)


def _list_steps(task: Task) -> Iterator[Span]:
    rows = Step.objects.filter(task_id=task.pk).order_by("-created_at")
    used = _read_usage(task)
    for name, run, ended, seconds in rows.values_list("name", "run", "created_at", "seconds")[
        :MOST
    ]:
        kind, label = _classify(name)
        began = None if seconds is None else ended - timedelta(seconds=seconds)
        note = used.get((run, name), "")
        yield Span(kind=kind, label=label, began=began, ended=ended, note=note, of=run, step=name)


def _read_usage(task: Task) -> dict[tuple[int, str], str]:
    """Return the usage of models in words, by run and step."""
    rows = Usage.objects.filter(task=task.pk).exclude(step="").order_by("-pk")
    columns = ("run", "step", "model", "input_tokens", "output_tokens", "cost", "currency")
    return {
        (run, step): f"{model}, {taken:,} tokens in, {given:,} out"
        + ("" if cost is None else f", {cost:g} {currency}")
        for run, step, model, taken, given, cost, currency in rows.values_list(*columns)[:MOST]
    }


def _list_failed_steps(task: Task, *, shows_faults: bool) -> Iterator[Span]:
    """Yield the steps that raised: only the log of the run has them."""
    lines = RunLine.objects.filter(run__task_id=task.pk, logger=FAILURES).order_by("-at")
    for run, at, text in lines.values_list("run_id", "at", "text")[:MOST]:
        if found := FAILED.fullmatch(text):
            kind, label = _classify(found[1])
            began = at - timedelta(seconds=float(found[2]))
            yield Span(
                kind=kind,
                label=label,
                began=began,
                ended=at,
                note=found[3] if shows_faults else "failed",
                is_fault=True,
                of=run,
                step=found[1],
            )


def _classify(name: str) -> tuple[Kind, str]:
    if tool := find_tool(name):
        return Kind.TOOL, tool
    return (Kind.MODEL, name) if _MODEL.search(name) else (Kind.STEP, name)


def _list_questions(task: Task) -> Iterator[Span]:
    """Yield the times for which the task waited for its client."""
    changes = Event.objects.filter(
        task_id=task.pk, kind__in=(EventKind.STATUS, EventKind.INPUT)
    ).order_by("-number")
    asked: tuple[TaskState, datetime] | None = None
    for state, at in reversed(changes.values_list("state", "created_at")[:MOST]):
        if asked is not None:
            yield _ask(*asked, at)
            asked = None
        if state in INTERRUPTED:
            asked = TaskState(state), at
    if asked is not None:
        yield _ask(*asked, task.status_at if task.state in TERMINAL else None)


def _ask(state: TaskState, began: datetime, ended: datetime | None) -> Span:
    return Span(kind=Kind.PERSON, label=ASKED[state], began=began, ended=ended, note="asked")


def _list_calls(task: Task) -> Iterator[Span]:
    """Yield the tasks that it gave to other agents."""
    calls = Delegation.objects.filter(parent=task.pk).order_by("pk")
    rows = calls.values_list(
        "created_at", "name", *(f"child__{name}" for name in ("pk", "agent", "state", "status_at"))
    )
    for began, name, key, agent, state, at in rows[:MOST]:
        ended = at if state in TERMINAL else None
        word = TaskState(state).word
        yield Span(
            kind=Kind.CALL,
            label=agent,
            began=began,
            ended=ended,
            note=word,
            is_fault=state == TaskState.FAILED,
            of=key,
            step=name,
        )


def _list_webhooks(task: Task) -> Iterator[Span]:
    tries = Attempt.objects.filter(delivery__task_id=task.pk).order_by("-started_at", "-pk")
    names = ("address", "delivery", "started_at", "seconds", "status", "fault")
    for address, delivery, began, seconds, status, fault in reversed(
        tries.annotate(address=F("delivery__receiver__address")).values_list(*names)[:MOST]
    ):
        yield Span(
            kind=Kind.WEBHOOK,
            label=address,
            began=began,
            ended=began + timedelta(seconds=seconds),
            note=f"{status or fault}",
            is_fault=bool(fault),
            of=delivery,
        )
