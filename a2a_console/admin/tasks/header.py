"""The header of a task's page, and its facts: state, owner, worker, cost, failure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html, format_html_join

from a2a_console.admin.tasks.diagnosis import ShownDiagnosis, read_diagnosis
from a2a_console.admin.tasks.sources import describe_holder
from a2a_console.admin.widgets import principals
from a2a_console.admin.widgets.excerpt import text_of
from a2a_console.admin.widgets.formatting import escape_name, mask_numbers, parse_body
from a2a_console.admin.widgets.staff import may_view
from a2a_console.diagnosis.call_tree import CalledTask, read_tree
from a2a_console.excerpts import select_end, select_start
from a2a_console.site import page_url
from a2a_console.staff import may_see_traces, tenants_of, within
from a2a_console.times import duration, moment
from a2a_tasks.agents.usage import ModelUsage
from a2a_tasks.models import Context, Run, RunStatus, Task
from a2a_tasks.protocol.dialects import DIALECTS
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.usage import sum_by_task

__all__ = ["TaskHeader", "list_facts", "read_header"]

#: The step in seconds of the duration of an open task, so that the header does not change each second.
STEP = 5
#: The newest tasks of the host, and the newest failed ones of the agent among them, that may have failed alike.
WINDOW, FAILURES = 20_000, 200


@dataclass(frozen=True, kw_only=True)
class TaskHeader:
    """The context of the header."""

    state: str
    is_ended: bool
    took: str
    agent: str
    #: The caller, with a link to the caller's tasks.
    who: Any
    #: The task that called it, if an agent did.
    parent: Task | None
    #: Requests to models, and their cost; 0 and empty = none are known.
    model_calls: int
    cost: str
    #: The exception with which the agent failed, for users who may see traces, or the agent's own words; empty = none.
    fault: str = ""
    #: The key of the run with the trace; 0 = the user sees none.
    failed_run: int = 0
    #: Other tasks that failed alike, among the newest FAILURES failed ones of the agent.
    alike: int = 0
    #: The reason for the state and what happens next; None once the task has ended.
    diagnosis: ShownDiagnosis | None


def read_header(request: HttpRequest, task: Task) -> TaskHeader:
    """Return the header as it is now, for this user."""
    is_ended = task.state in TERMINAL
    used = sum_by_task([task.pk]).get(task.pk, {}).values()
    costs = defaultdict[str, float](float)
    for each in used:
        costs[each.currency] += each.cost or 0
    version = task.context.version
    has_failed = task.state in {TaskState.FAILED, TaskState.REJECTED}
    return TaskHeader(
        state=TaskState(task.state).word,
        is_ended=is_ended,
        took=_format_duration(task),
        agent=f"{task.agent} {version}" if version else task.agent,
        who=_caller(task.created_by or task.owner),
        parent=Task.objects.filter(calls__child=task.pk).only("public_id", "agent").first(),
        model_calls=sum(each.requests for each in used),
        cost=", ".join(f"{cost:.4g} {name}" for name, cost in costs.items() if cost),
        diagnosis=None if is_ended else read_diagnosis(request, task.pk),
        **(_read_failure(request, task) if has_failed else {}),
    )


def _read_failure(request: HttpRequest, task: Task) -> dict[str, Any]:
    """Return the exception for users who may see traces, else what the client was told."""
    if may_view(request, Run) and may_see_traces(tenants_of(request.user)):
        runs = Run.objects.filter(task_id=task.pk, status=RunStatus.FAILED).order_by("-pk")
        key, trace = runs.values_list("pk", select_end("error")).first() or (0, "")
        # Tasks of earlier releases have no text.
        text = task.status_text or trace.rstrip().rpartition("\n")[2]
        alike = _count_alike(request, task) if task.status_text else 0
        if text:
            return {"fault": escape_name(text), "failed_run": key, "alike": alike}
    said = Task.objects.filter(pk=task.pk).values_list(select_start("status_message"), flat=True)
    return {"fault": text_of(parse_body(said[0])) if said else ""}


def _count_alike(request: HttpRequest, task: Task) -> int:
    """Count the other failed tasks of the agent whose text is the same but for its numbers."""
    newest = Task.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    failed = within(Task.objects.filter(state=TaskState.FAILED), request.user)
    rows = failed.filter(agent=task.agent, pk__gt=newest - WINDOW).exclude(pk=task.pk)
    texts = rows.order_by("-pk").values_list("status_text", flat=True)[:FAILURES]
    wanted = mask_numbers(task.status_text)
    return sum(mask_numbers(text) == wanted for text in texts)


def list_facts(request: HttpRequest, task: Task) -> Iterator[tuple[str, Any]]:
    """Yield names and values for the tab of facts; a value is text or a link."""
    if may_view(request, Run):
        yield "Run", _work(task)
    yield "Task id", task.public_id
    yield "Created by", _caller(task.created_by or task.owner)
    if task.created_by:
        yield "Visible to", "all callers of its tenant"
    if task.tenant:
        yield "Tenant", task.tenant
    yield "Agent", task.agent
    dialect = DIALECTS.get(task.origin_dialect)
    version = f"{dialect.title} ({dialect.code})" if dialect else task.origin_dialect
    yield "Protocol version", version
    tree = read_tree(task.pk)
    made = "call of another agent" if tree and tree[0].key != task.pk else "created by an operator"
    yield "Transport", task.origin_binding or f"none ({made})"
    yield "Created", moment(task.created_at)
    yield "Status since", moment(task.status_at)
    yield "Events", str(task.last_event)
    yield "Context", _context(request, task)
    if tree:
        yield "Calls", _describe_tree(tree, task.pk)
    for model, used in sum_by_task([task.pk]).get(task.pk, {}).items():
        yield f"Usage of {escape_name(model)}", _describe_usage(used)
    if task.predecessor_id:
        yield "Took over the id of", _predecessor(task)


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


def _describe_tree(tree: list[CalledTask], own: int) -> Any:
    """Return the tasks that have called each other, a line each: agent, task, state, duration and cost."""
    lines = []
    for each in tree:
        name, url = escape_name(each.public_id), page_url("a2a_tasks_task_change", each.key)
        about = [TaskState(each.state).word]
        if each.state in TERMINAL:
            about.append(duration(each.status_at - each.created_at))
        if each.cost is not None:
            about.append(f"{each.cost:g} {each.currency}".rstrip())
        link = format_html('<a class="a2a-id" href="{}">{}</a>', url, name)
        shown = "this task" if each.key == own else link
        lines.append(("— " * each.depth + each.agent, shown, ", ".join(about)))
    return format_html_join("", "{} {} ({})<br>", lines)


def _describe_usage(used: ModelUsage) -> str:
    cached = f", {used.cached_tokens} cached" if used.cached_tokens else ""
    cached += f", {used.cache_write_tokens} to the cache" if used.cache_write_tokens else ""
    cost = "" if used.cost is None else f", cost {used.cost:g} {used.currency}".rstrip()
    noun = "request" if used.requests == 1 else "requests"
    return f"{used.requests} {noun}: {used.input_tokens} tokens in{cached}, {used.output_tokens} out{cost}"


def _predecessor(task: Task) -> Any:
    found = Task.objects.filter(pk=task.predecessor_id or 0).only("public_id").first()
    if found is None:
        return "a task that is gone"
    url = page_url("a2a_tasks_task_change", found.pk)
    return format_html('<a class="a2a-id" href="{}">{}</a>', url, escape_name(found.public_id))
