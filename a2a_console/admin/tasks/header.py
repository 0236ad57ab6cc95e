"""The header of a task's page: state, owner, worker. The page updates it with the task."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Q
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.html import format_html

from a2a_console.admin.tasks.diagnosis import ShownDiagnosis, read_diagnosis
from a2a_console.admin.tasks.sources import describe_holder
from a2a_console.admin.widgets import principals
from a2a_console.admin.widgets.formatting import escape_name
from a2a_console.admin.widgets.staff import may_view
from a2a_console.site import page_url
from a2a_console.times import duration, moment
from a2a_tasks.agents.usage import ModelUsage
from a2a_tasks.models import Context, Run, RunStatus, Task
from a2a_tasks.protocol.dialects import DIALECTS
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.usage import sum_by_task

__all__ = ["TaskHeader", "header"]

#: The step in seconds of the duration of an open task, so that the header does not change each second.
STEP = 5


@dataclass(frozen=True, kw_only=True)
class TaskHeader:
    """The context of the header."""

    state: str
    is_ended: bool
    #: Names and values; a value is text or a link.
    facts: list[tuple[str, Any]]
    #: The reason for the state and what happens next; None once the task has ended.
    diagnosis: ShownDiagnosis | None
    #: A hash of what the header shows.
    mark: str


def header(request: HttpRequest, task: Task) -> TaskHeader:
    """Return the header as it is now, for this user."""
    state, facts = TaskState(task.state).word, list(_facts(request, task))
    is_ended = task.state in TERMINAL
    diagnosis = None if is_ended else read_diagnosis(request, task.pk)
    # The sentences of a diagnosis count seconds, so the hash has only its kind.
    kind = diagnosis.task.reason.kind if diagnosis else ""
    looks = render_to_string("admin/a2a_tasks/task/facts.html", {"facts": facts, "state": state})
    mark = hashlib.sha256(f"{kind}{looks}".encode()).hexdigest()[:16]
    return TaskHeader(state=state, is_ended=is_ended, facts=facts, diagnosis=diagnosis, mark=mark)


def _facts(request: HttpRequest, task: Task) -> Iterator[tuple[str, Any]]:
    yield "Duration", _format_duration(task)
    if may_view(request, Run):
        yield "Run", _work(task)
    yield "Created by", _caller(task.maker or task.owner)
    if task.maker:
        yield "Visible to", "all callers of its tenant"
    if task.tenant:
        yield "Tenant", task.tenant
    yield "Agent", task.agent
    dialect = DIALECTS.get(task.origin_dialect)
    version = f"{dialect.title} ({dialect.code})" if dialect else task.origin_dialect
    yield "Protocol version", version
    yield "Transport", task.origin_binding or "not recorded (created by an operator)"
    yield "Created", moment(task.created_at)
    yield "Status since", moment(task.status_at)
    yield "Events", str(task.last_event)
    yield "Context", _context(request, task)
    for model, used in sum_by_task([task.pk]).get(task.pk, {}).items():
        yield f"Usage of {escape_name(model)}", _describe_usage(used)
    if task.predecessor_id:
        yield "Began anew after", _predecessor(task)


def _caller(principal: str) -> Any:
    """Return a link with the name, if there is one, and the principal beside it."""
    if not principal:
        return "anonymous"
    name = principals.names([principal]).get(principal, "")
    link = principals.link_to(principal, name)
    return format_html('{} <span class="a2a-id">{}</span>', link, principal) if name else link


def _format_duration(task: Task) -> str:
    if task.state in TERMINAL:
        return duration(task.status_at - task.created_at)
    seconds = (timezone.now() - task.created_at).total_seconds()
    span = timedelta(seconds=seconds - seconds % STEP)
    return f"{duration(span)} so far" if span else "just begun"


def _work(task: Task) -> Any:
    """Return the run that matters most now: the one that runs or waits, else the newest."""
    columns = ("pk", "status", "attempt", "worker", "lease_until", "queue", "round", "due_at")
    mine = Run.objects.filter(task_id=task.pk).only(*columns, "parked_in")
    alive = Q(status__in=(RunStatus.RUNNING, RunStatus.QUEUED))
    run = mine.filter(alive).order_by("pk").first() or mine.order_by("-pk").first()
    if run is None:
        return "no run"
    url = page_url("a2a_tasks_run_change", run.pk)
    return format_html('<a href="{}">run {}</a> {}', url, run.pk, _describe_run(run))


def _describe_run(run: Run) -> str:
    if run.is_parked:
        return f"parked in the step {escape_name(run.parked_in)} until {moment(run.due_at)}"
    if run.status == RunStatus.QUEUED:
        after = f" after {run.attempt} attempts" if run.attempt else ""
        return f"queued in {run.queue}{after}"
    if run.status != RunStatus.RUNNING:
        return f"{run.status}, attempt {run.attempt}"
    return f"attempt {run.attempt} on {run.worker} {describe_holder(run)}"


def _context(request: HttpRequest, task: Task) -> Any:
    name = escape_name(task.context.public_id)
    if not may_view(request, Context):
        return name
    url = page_url("a2a_tasks_context_change", task.context_id)
    chat = page_url("a2a_tasks_context_conversation", task.context_id)
    link = '<a class="a2a-id" href="{}">{}</a> · <a href="{}">conversation</a>'
    return format_html(link, url, name, chat)


def _describe_usage(used: ModelUsage) -> str:
    cached = f", {used.cached_tokens} cached" if used.cached_tokens else ""
    cost = "" if used.cost is None else f", cost {used.cost:g} {used.currency}".rstrip()
    noun = "request" if used.requests == 1 else "requests"
    return f"{used.requests} {noun}: {used.input_tokens} tokens in{cached}, {used.output_tokens} out{cost}"


def _predecessor(task: Task) -> Any:
    found = Task.objects.filter(pk=task.predecessor_id or 0).only("public_id").first()
    if found is None:
        return "a task that is gone"
    url = page_url("a2a_tasks_task_change", found.pk)
    return format_html('<a class="a2a-id" href="{}">{}</a>', url, escape_name(found.public_id))
