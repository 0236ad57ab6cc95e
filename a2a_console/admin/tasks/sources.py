"""The sources of a task's timeline besides its events: runs with their attempts, steps, log lines, audit entries
and webhook attempts.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet, Subquery
from django.http import HttpRequest
from django.utils import timezone

from a2a_console.admin.webhooks.of_task import attempts
from a2a_console.admin.widgets.formatting import FormattedBody, escape_name, format_body
from a2a_console.admin.widgets.lines import MAX_COUNT, LineSpan, TimelineLine
from a2a_console.admin.widgets.staff import may_view
from a2a_console.excerpts import select_end, select_start, size
from a2a_console.staff import may_see_traces, tenants_of
from a2a_console.times import duration, moment
from a2a_tasks.models import AuditEntry, Run, RunStatus, Step, Task
from a2a_tasks.store import audit, run_lines
from a2a_tasks.store.segments import DIED, find_last_begin, read_segments

__all__ = ["SOURCES", "STEP", "Source", "describe_holder", "lines_of"]

#: The line that the store writes about an attempt that ended without its run (store/runs.py).
DEATH = re.compile(
    r"^Attempt (\d+) on ((?>.*?(?= died: | died with \d| was stopped ))) "
    r"(?:died(?: (with \d+ other runs))?: (.*)\.|was stopped with its process\.)$",
    re.M,
)
LEASE_ENDED = "its lease ended at "
#: A run that waited less than this has one line in the timeline, not one for queued and one for started.
AT_ONCE = timedelta(seconds=1)
#: The largest number of dead attempts of one run in the timeline.
DEATHS = 20
RUN, STEP, ENTRY, LOG = (
    f"admin/a2a_tasks/task/line_{name}.html" for name in ("run", "step", "audit", "log")
)


@dataclass(frozen=True, kw_only=True)
class TurnSource:
    """One change of a run."""

    run: Run
    #: queued, started, fenced, or the status at the end.
    word: str
    says: str
    trace: FormattedBody | None = None


def runs(request: HttpRequest, span: LineSpan) -> Iterator[TimelineLine]:
    """Yield the changes of the runs that were alive in the span, for users who may view runs."""
    if not may_view(request, Run):
        return
    alive = Run.objects.filter(task_id=span.task.pk).order_by("-pk")
    if span.until is not None:
        alive = alive.filter(created_at__lte=span.until)
    if span.since is not None:
        alive = alive.filter(Q(ended_at=None) | Q(ended_at__gt=span.since))
    rows = (
        alive.defer("error", "request", "token")
        .annotate(tail=select_end("error"), length=size("error"))
        .order_by("-pk")[: MAX_COUNT + 1]
    )
    traced = may_see_traces(tenants_of(request.user))
    for run in reversed(rows):
        yield from (line for line in _turns(run, traced=traced) if span.has(line.at))


def _turns(run: Run, *, traced: bool) -> Iterator[TimelineLine]:
    """Yield all changes of a run, in order."""
    ended, started = read_segments(run.past), find_last_begin(run)
    first = ended[0].began if ended else started
    if first is None or first - run.created_at > AT_ONCE:
        says = f"in {run.queue} for event {run.input_number}"
        yield _turn(run, run.created_at, "queued", says)
    yield from _deaths(run, {each.attempt: each.ended for each in ended if each.how == DIED})
    for past in ended:
        where = f"attempt {past.attempt} on {escape_name(past.worker)}"
        yield _turn(run, past.began, "started", where)
        if past.how != DIED:  # a death has its line already
            step = f" in the step {escape_name(past.step)}" if past.step else ""
            yield _turn(run, past.ended, past.how, f"{where}{step}")
    if started is not None:
        # The header shows the holder of the lease: this line stays on a page that follows the task.
        yield _turn(run, started, "started", f"attempt {run.attempt} on {run.worker}")
    if run.ended_at is not None:
        yield _make_end(run, run.ended_at, traced=traced)


def _turn(run: Run, at: datetime, word: str, says: str) -> TimelineLine:
    turn = TurnSource(run=run, word=word, says=says)
    return TimelineLine(at=at, template=RUN, content=turn, is_grave=word == "fenced")


def describe_holder(run: Run) -> str:
    """Describe the lease of a run, which allows its worker to write for the task."""
    if run.status != RunStatus.RUNNING or run.lease_until is None:
        return "had the lease"
    until = moment(run.lease_until)
    if run.lease_until < timezone.now():
        return f"· lease expired {until}; another worker will reclaim it"
    return f"· lease renews by {until}"


def _deaths(run: Run, ends: Mapping[int, datetime]) -> Iterator[TimelineLine]:
    """Yield the attempts that died, with the ends that are known. Of tasks of earlier releases that is the end of a
    lease that ran out; the others have the moment at which the next attempt began or the run ended.
    """
    next_began = run.started_at or run.created_at
    for number, worker, others, how in DEATH.findall(getattr(run, "tail", ""))[-DEATHS:]:
        is_last = int(number) >= run.attempt
        at = ends.get(int(number)) or (run.ended_at if is_last and run.ended_at else next_began)
        if how.startswith(LEASE_ENDED):
            with contextlib.suppress(ValueError):
                at = datetime.fromisoformat(how.removeprefix(LEASE_ENDED))
        reason = " ".join([escape_name(how) or "stopped with its process", others]).rstrip()
        says = f"attempt {number} on {escape_name(worker)}: {reason}"
        yield _turn(run, at, "fenced", says)


def _make_end(run: Run, at: datetime, *, traced: bool) -> TimelineLine:
    begun, past = find_last_begin(run), read_segments(run.past)
    work = [each.ended - each.began for each in past] + ([at - begun] if begun else [])
    attempt = run.attempt or (past[-1].attempt if past else 0)
    took = f" after {duration(sum(work, timedelta()))} of work" if work else ""
    length: int = getattr(run, "length", 0)
    tail: str = getattr(run, "tail", "")
    is_more = tail if run.status != RunStatus.ENDED else DEATH.sub("", tail).strip()
    turn = TurnSource(
        run=run,
        word=run.status,
        says=f"attempt {attempt}{took}" if attempt else "never started",
        # The deaths of other attempts have lines of their own. A run that ended well may have no other text.
        trace=FormattedBody(text=tail, size=length) if is_more and traced else None,
    )
    return TimelineLine(at=at, template=RUN, content=turn, is_grave=run.status == RunStatus.FAILED)


def steps(request: HttpRequest, span: LineSpan) -> Iterator[TimelineLine]:
    """Yield the steps that were stored in the span, for users who may view runs."""
    if not may_view(request, Run):
        return
    rows = (
        Step.objects.filter(task_id=span.task.pk, **span.of("created_at"))
        .defer("result")
        .annotate(head=select_start("result"), length=size("result"))
        .order_by("-input_number", "-created_at", "-name")[: MAX_COUNT + 1]
    )
    for step in reversed(rows):
        took = "" if step.seconds is None else duration(timedelta(seconds=step.seconds))
        content = {"step": step, "took": took, "body": format_body(step.head, step.length)}
        yield TimelineLine(at=step.created_at, template=STEP, content=content)


def entries(request: HttpRequest, span: LineSpan) -> Iterator[TimelineLine]:
    """Yield the audit entries about the task in the span, for users who may view the audit log.

    Entries name tasks by public id: if two owners have tasks of the same id, tenant and agent, each shows the entries
    of both.
    """
    if not may_view(request, AuditEntry):
        return
    task = span.task
    # The database compares the moments: in SQLite, its own text of a moment is shorter than Python's for the same one.
    made = Subquery(Task.objects.filter(pk=task.pk).values("created_at"))
    rows: QuerySet[Any] = AuditEntry.objects.filter(
        object=task.public_id,
        tenant=task.tenant,
        agent=task.agent,
        created_at__gte=made,
        **span.of("created_at"),
    )
    for entry in reversed(rows.order_by("-pk")[: MAX_COUNT + 1]):
        is_grave = entry.outcome == audit.REFUSED
        yield TimelineLine(at=entry.created_at, template=ENTRY, content=entry, is_grave=is_grave)


def log_lines(request: HttpRequest, span: LineSpan) -> Iterator[TimelineLine]:
    """Yield the log lines of the task's runs in the span, for users who may view runs and traces."""
    if not (may_view(request, Run) and may_see_traces(tenants_of(request.user))):
        return
    rows = run_lines.of(span.task.pk).filter(**span.of("at"))
    for line in reversed(rows.order_by("-at", "-run_id", "-number")[: MAX_COUNT + 1]):
        content = {"line": line, "word": logging.getLevelName(line.level).lower()}
        is_grave = line.level >= logging.ERROR
        yield TimelineLine(at=line.at, template=LOG, content=content, is_grave=is_grave)


#: A function that yields the newest MAX_COUNT + 1 lines of a span at most, oldest first. It reads slices along an
#: index and checks the permissions of the user itself. The page says so if there are more than MAX_COUNT.
Source = Callable[[HttpRequest, LineSpan], Iterable[TimelineLine]]
#: The sources by the plural of their lines.
SOURCES: Mapping[str, Source] = {
    "runs": runs,
    "steps": steps,
    "log lines": log_lines,
    "audit entries": entries,
    "webhook attempts": attempts,
}


def lines_of(request: HttpRequest, span: LineSpan) -> tuple[list[TimelineLine], list[str]]:
    """Return the lines of all sources in a span, in order, and the names of the sources that were cut."""
    lines: list[TimelineLine] = []
    cut: list[str] = []
    for what, source in SOURCES.items():
        found = sorted(source(request, span), key=lambda line: line.at)
        cut += [what] if len(found) > MAX_COUNT else []
        lines += found[-MAX_COUNT:]
    return sorted(lines, key=lambda line: line.at), cut
