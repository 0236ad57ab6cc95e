"""What the timeline of a task tells beside its events: runs with their attempts, steps, log lines, and what the audit log has of the task."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet, Subquery
from django.http import HttpRequest
from django.utils import timezone

from a2a_tasks.admin.beside import MOST, Line, Span, tell
from a2a_tasks.admin.shown import Shown, beginning, duration, ending, moment, named, shown, size
from a2a_tasks.admin.staff import may_see_traces, may_view, tenants_of
from a2a_tasks.models import AuditEntry, Run, RunStatus, Step, Task
from a2a_tasks.store import audit, run_lines

__all__ = ["held", "register"]

#: What the store says of an attempt that ended without its run (store/runs.py).
DEATH = re.compile(r"^Attempt (\d+) on (.*) (?:died: (.*)\.|was stopped with its process\.)$", re.M)
LEASE_ENDED = "its lease ended at "
#: A run that waited shorter was started at once, and one line tells both.
AT_ONCE = timedelta(seconds=1)
#: Deaths of one run that are told.
DEATHS = 20
RUN, STEP, ENTRY, LOG = (
    f"admin/a2a_tasks/task/line_{name}.html" for name in ("run", "step", "audit", "log")
)


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One thing that happened to a run."""

    run: Run
    #: queued, started, fenced, or how it ended.
    word: str
    says: str
    trace: Shown | None = None


def runs(request: HttpRequest, span: Span) -> Iterator[Line]:
    """The turns of the runs that were alive in the span, to who may view runs."""
    if not may_view(request, Run):
        return
    alive = Run.objects.filter(task_id=span.task.pk).order_by("-pk")
    if span.until is not None:
        alive = alive.filter(created_at__lte=span.until)
    if span.since is not None:
        alive = alive.filter(Q(ended_at=None) | Q(ended_at__gt=span.since))
    rows = (
        alive.defer("error", "request", "token")
        .annotate(tail=ending("error"), length=size("error"))
        .order_by("-pk")[: MOST + 1]
    )
    traced = may_see_traces(tenants_of(request.user))
    for run in reversed(rows):
        yield from (line for line in _turns(run, traced=traced) if span.has(line.at))


def _turns(run: Run, *, traced: bool) -> Iterator[Line]:
    """Everything that is known of a run, in order."""
    started = run.started_at
    if started is None or started - run.created_at > AT_ONCE:
        says = f"in {run.queue}, to answer event {run.input_number}"
        yield _turn(run, run.created_at, "queued", says)
    yield from _deaths(run)
    if started is not None and run.status != RunStatus.QUEUED:
        # Who holds it now is told by the header: this line stays on a page that follows the task.
        yield _turn(run, started, "started", f"attempt {run.attempt} on {run.worker}")
    if run.ended_at is not None:
        yield _ended(run, run.ended_at, traced=traced)


def _turn(run: Run, at: datetime, word: str, says: str) -> Line:
    turn = Turn(run=run, word=word, says=says)
    return Line(at=at, template=RUN, content=turn, is_grave=word == "fenced")


def held(run: Run) -> str:
    """Who may write for the task through a run, in words."""
    if run.status != RunStatus.RUNNING or run.lease_until is None:
        return "held it"
    until = moment(run.lease_until)
    if run.lease_until < timezone.now():
        return f"held it until {until}; it is overdue, and somebody else will take it"
    return f"holds it until {until} and extends that"


def _deaths(run: Run) -> Iterator[Line]:
    """The attempts that died. When is known of those whose lease ran out; others are told when the next began, or the run ended."""
    next_began = run.started_at or run.created_at
    for number, worker, how in DEATH.findall(getattr(run, "tail", ""))[-DEATHS:]:
        is_last = int(number) >= run.attempt
        at = run.ended_at if is_last and run.ended_at else next_began
        if how.startswith(LEASE_ENDED):
            with contextlib.suppress(ValueError):
                at = datetime.fromisoformat(how.removeprefix(LEASE_ENDED))
        says = f"attempt {number} on {named(worker)}: {named(how) or 'stopped with its process'}"
        yield _turn(run, at, "fenced", says)


def _ended(run: Run, at: datetime, *, traced: bool) -> Line:
    took = f" after {duration(at - run.started_at)}" if run.started_at else ""
    length: int = getattr(run, "length", 0)
    tail: str = getattr(run, "tail", "")
    is_more = tail if run.status != RunStatus.ENDED else DEATH.sub("", tail).strip()
    turn = Turn(
        run=run,
        word=run.status,
        says=f"attempt {run.attempt}{took}" if run.attempt else "never started",
        # How the others died is told above; of one that ended well there may be nothing else.
        trace=Shown(text=tail, size=length) if is_more and traced else None,
    )
    return Line(at=at, template=RUN, content=turn, is_grave=run.status == RunStatus.FAILED)


def steps(request: HttpRequest, span: Span) -> Iterator[Line]:
    """The steps kept in the span, to who may view runs."""
    if not may_view(request, Run):
        return
    rows = (
        Step.objects.filter(task_id=span.task.pk, **span.of("created_at"))
        .defer("result")
        .annotate(head=beginning("result"), length=size("result"))
        .order_by("-input_number", "-created_at", "-name")[: MOST + 1]
    )
    for step in reversed(rows):
        content = {"step": step, "body": shown(step.head, step.length)}
        yield Line(at=step.created_at, template=STEP, content=content)


def entries(request: HttpRequest, span: Span) -> Iterator[Line]:
    """What the audit log has of the task in the span, to who may view that log.

    Its entries name tasks by their public id: of two owners' tasks of one id, tenant and agent, each has the entries of both.
    """
    if not may_view(request, AuditEntry):
        return
    task = span.task
    # Compared where they are stored: in SQLite a moment of the database's is a shorter text than the same of Python's.
    made = Subquery(Task.objects.filter(pk=task.pk).values("created_at"))
    rows: QuerySet[Any] = AuditEntry.objects.filter(
        object=task.public_id,
        tenant=task.tenant,
        agent=task.agent,
        created_at__gte=made,
        **span.of("created_at"),
    )
    for entry in reversed(rows.order_by("-pk")[: MOST + 1]):
        is_grave = entry.outcome == audit.REFUSED
        yield Line(at=entry.created_at, template=ENTRY, content=entry, is_grave=is_grave)


def log_lines(request: HttpRequest, span: Span) -> Iterator[Line]:
    """What its runs told the log in the span, to who may view runs."""
    if not may_view(request, Run):
        return
    rows = run_lines.of(span.task.pk).filter(**span.of("at"))
    for line in reversed(rows.order_by("-at", "-run_id", "-number")[: MOST + 1]):
        content = {"line": line, "word": logging.getLevelName(line.level).lower()}
        is_grave = line.level >= logging.ERROR
        yield Line(at=line.at, template=LOG, content=content, is_grave=is_grave)


def register() -> None:
    """Have them told."""
    tell("runs", runs)
    tell("steps", steps)
    tell("log lines", log_lines)
    tell("audit entries", entries)
