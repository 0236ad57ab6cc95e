"""What stands on top of a task's page: how it stands, whose it is, who works on it. It moves with the task."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Q
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html

from a2a_tasks.admin import principals
from a2a_tasks.admin.shown import duration, moment, named
from a2a_tasks.admin.sources import held
from a2a_tasks.admin.staff import may_view
from a2a_tasks.admin.standing import Shown, shown_standing
from a2a_tasks.models import Context, Run, RunStatus, Task
from a2a_tasks.protocol.dialects import DIALECTS
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import TaskState

__all__ = ["Header", "header"]

#: A task that is under way has its time told by steps of this, so that the header need not move each second.
STEP = 5


@dataclass(frozen=True, kw_only=True)
class Header:
    """What the page says on top."""

    state: str
    is_ended: bool
    #: Names and what they are, as text or links.
    facts: list[tuple[str, Any]]
    #: Why it stands as it does, and what happens next; None once it has ended.
    standing: Shown | None
    #: Stands for what it shows.
    mark: str


def header(request: HttpRequest, task: Task) -> Header:
    """The header as it is now, for this user."""
    state, facts = TaskState(task.state).word, list(_facts(request, task))
    is_ended = task.state in TERMINAL
    standing = None if is_ended else shown_standing(request, task.pk)
    # Its sentences count seconds: what they are about is enough.
    kind = standing.task.reason.kind if standing else ""
    looks = render_to_string("admin/a2a_tasks/task/facts.html", {"facts": facts, "state": state})
    mark = hashlib.sha256(f"{kind}{looks}".encode()).hexdigest()[:16]
    return Header(state=state, is_ended=is_ended, facts=facts, standing=standing, mark=mark)


def _facts(request: HttpRequest, task: Task) -> Iterator[tuple[str, Any]]:
    yield "Lasted", _lasted(task)
    if may_view(request, Run):
        yield "Work", _work(task)
    yield "Who", _caller(task.maker or task.owner)
    if task.maker:
        yield "Shared by", "everybody of its tenant"
    if task.tenant:
        yield "Tenant", task.tenant
    yield "Agent", task.agent
    dialect = DIALECTS.get(task.origin_dialect)
    yield "Made in", f"{dialect.title} ({dialect.code})" if dialect else task.origin_dialect
    yield "Came by", task.origin_binding or "no binding: an operator, or before this was kept"
    yield "Created", moment(task.created_at)
    yield "Status since", moment(task.status_at)
    yield "Events", str(task.last_event)
    yield "Context", _context(request, task)
    if task.predecessor_id:
        yield "Began anew after", _predecessor(task)


def _caller(principal: str) -> Any:
    """By name if it has one, with the principal beside it."""
    if not principal:
        return "anonymous"
    name = principals.names([principal]).get(principal, "")
    link = principals.link_to(principal, name)
    return format_html('{} <span class="a2a-id">{}</span>', link, principal) if name else link


def _lasted(task: Task) -> str:
    if task.state in TERMINAL:
        return duration(task.status_at - task.created_at)
    seconds = (timezone.now() - task.created_at).total_seconds()
    span = timedelta(seconds=seconds - seconds % STEP)
    return f"{duration(span)} so far" if span else "just begun"


def _work(task: Task) -> Any:
    """The run that matters most now: the one that goes on or waits, else the newest."""
    columns = ("pk", "status", "attempt", "worker", "lease_until", "queue")
    mine = Run.objects.filter(task_id=task.pk).only(*columns)
    alive = Q(status__in=(RunStatus.RUNNING, RunStatus.QUEUED))
    run = mine.filter(alive).order_by("pk").first() or mine.order_by("-pk").first()
    if run is None:
        return "no run"
    url = reverse("admin:a2a_tasks_run_change", args=[run.pk])
    return format_html('<a href="{}">run {}</a> {}', url, run.pk, _said(run))


def _said(run: Run) -> str:
    if run.status == RunStatus.QUEUED:
        after = f" after {run.attempt} attempts" if run.attempt else ""
        return f"waits in the queue {run.queue}{after}"
    if run.status != RunStatus.RUNNING:
        return f"{run.status}, attempt {run.attempt}"
    return f"attempt {run.attempt} on {run.worker} {held(run)}"


def _context(request: HttpRequest, task: Task) -> Any:
    name = named(task.context.public_id)
    if not may_view(request, Context):
        return name
    url = reverse("admin:a2a_tasks_context_change", args=[task.context_id])
    chat = reverse("admin:a2a_tasks_context_conversation", args=[task.context_id])
    link = '<a class="a2a-id" href="{}">{}</a> · <a href="{}">conversation</a>'
    return format_html(link, url, name, chat)


def _predecessor(task: Task) -> Any:
    found = Task.objects.filter(pk=task.predecessor_id or 0).only("public_id").first()
    if found is None:
        return "a task that is gone"
    url = reverse("admin:a2a_tasks_task_change", args=[found.pk])
    return format_html('<a class="a2a-id" href="{}">{}</a>', url, named(found.public_id))
