"""The page of a task: its header, conversation and waterfall, and below them a tab, which the URL names."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.text import Truncator

from a2a_console.admin.tasks import queue, raw_json, timeline
from a2a_console.admin.tasks.bar_panel import open_panel
from a2a_console.admin.tasks.conversation import read_chapter
from a2a_console.admin.tasks.header import list_facts, read_header
from a2a_console.admin.tasks.sources import Source, entries, lines_of, log_lines
from a2a_console.admin.tasks.waterfall import draw
from a2a_console.admin.webhooks.of_task import webhooks
from a2a_console.admin.widgets.lines import MAX_COUNT, LineSpan, TimelineLine
from a2a_console.admin.widgets.parts import Reading
from a2a_console.search.task_record import add_openings
from a2a_console.site import page_url
from a2a_tasks.audit import Action
from a2a_tasks.models import AuditEntry, Message, Task
from a2a_tasks.protocol.lifecycle import INTERRUPTED, TERMINAL
from a2a_tasks.store import event_log

__all__ = ["LIST", "TABS", "TITLE", "read_tab", "read_title", "read_top"]

EVENT = "admin/a2a_tasks/task/line_event.html"

#: The parameter of the URL in which Django keeps the query of the list from which the user came.
LIST = "_changelist_filters"
#: The longest title of a page, in characters.
TITLE = 80
#: The largest number of repetitions on the page of a task.
RELATED = 20
#: The longest delay of lines from other sources: log lines are written once a second.
LATE = timedelta(seconds=2.5)


def read_title(task: Task) -> str:
    """Return the beginning of the request; of one without text, the id."""
    return Truncator(add_openings([task])[0].opening or task.public_id).chars(TITLE)


def read_top(request: HttpRequest, task: Task) -> dict[str, Any]:
    """Return the context of the upper part: header, conversation, waterfall and the chosen bar."""
    waterfall = draw(request, task)
    chosen = waterfall.chosen if waterfall else None
    asks = task.state in INTERRUPTED and request.user.has_perm("a2a_tasks.answer_task")
    return {
        "original": task,
        "header": read_header(request, task),
        "chapter": read_chapter(task),
        "line": queue.get_row(task.pk) if asks else None,
        "waterfall": waterfall,
        "panel": open_panel(request, task, chosen) if chosen else None,
        "top_query": _keep(request, "tab", "from", "dialect", "bar", LIST),
        "unbarred": _keep(request, "tab", "from", "dialect", LIST),
        "goes_on": _goes_on(task) or bool(waterfall and waterfall.is_open),
    }


def _keep(request: HttpRequest, *names: str) -> str:
    """Return the parameters of these names in the URL, as a query."""
    return urlencode({name: request.GET[name] for name in names if name in request.GET})


def _goes_on(task: Task) -> bool:
    """Return whether the page of the task can still change: lines come late after the end."""
    return task.state not in TERMINAL or task.status_at > timezone.now() - LATE


# --- tabs ----------------------------------------------------------------------------------------


def _read_timeline(request: HttpRequest, task: Task) -> dict[str, Any]:
    window = timeline.Window.at(request.GET.get("from", ""), task.last_event)
    reading = Reading(base=page_url("a2a_tasks_task_change", task.pk).removesuffix("change/"))
    found, moments = timeline.entries(task.pk, window, reading)
    span = LineSpan(
        task=task,
        first=window.first,
        last=window.last,
        since=moments.get(window.first - 1) if window.older else None,
        until=moments.get(window.last) if window.newer else None,
    )
    others, cut = lines_of(request, span)
    lines = list(_merge(timeline.fold(found, reading), others))
    begins = event_log.find_first_number(task.pk) or 1
    return {"lines": lines, "cut": cut, "window": window, "begins": begins}


def _merge(
    events: Sequence[timeline.EventEntry], others: Sequence[TimelineLine]
) -> Iterator[TimelineLine]:
    """Merge both by time. Events stay in the order of their numbers and come first at the same moment."""
    rest = list(others)
    for event in events:
        while rest and rest[0].at < event.at:
            yield rest.pop(0)
        is_grave = event.kind == "status" and event.what == "failed"
        yield TimelineLine(at=event.at, template=EVENT, content=event, is_grave=is_grave)
    yield from rest


def _read_lines(source: Source, what: str) -> TabReader:
    def read(request: HttpRequest, task: Task) -> dict[str, Any]:
        found = list(source(request, LineSpan(task=task, first=1, last=task.last_event)))
        return {"lines": found[-MAX_COUNT:], "cut": [what] if len(found) > MAX_COUNT else []}

    return read


def _read_webhooks(request: HttpRequest, task: Task) -> dict[str, Any]:
    return {"section": webhooks(request, task.pk)}


def _read_json(request: HttpRequest, task: Task) -> dict[str, Any]:
    dialect = raw_json.dialect_of(request.GET.get("dialect", ""), task)
    return {"raw": raw_json.raw(task, dialect)}


def _read_facts(request: HttpRequest, task: Task) -> dict[str, Any]:
    return {
        "facts": list(list_facts(request, task)),
        "related": _list_related(task),
        "files": timeline.files(task.pk),
        "notes": timeline.notes(task.pk),
        "rows_shown": timeline.ROWS,
    }


TabReader = Callable[[HttpRequest, Task], dict[str, Any]]
#: The tabs by their names in the URL: the title, what they show, and its template. The first one needs no name.
TABS: Mapping[str, tuple[str, TabReader, str]] = {
    "timeline": ("Timeline", _read_timeline, "timeline"),
    "logs": ("Logs", _read_lines(log_lines, "log lines"), "story"),
    "webhooks": ("Webhooks", _read_webhooks, "webhooks"),
    "json": ("JSON", _read_json, "json"),
    "audit": ("Audit", _read_lines(entries, "audit entries"), "story"),
    "facts": ("Raw facts", _read_facts, "raw_facts"),
}


def read_tab(request: HttpRequest, task: Task) -> dict[str, Any]:
    """Return the context of the lower part: the tab in the URL; of an unknown one, the timeline."""
    name = request.GET.get("tab", "")
    name = name if name in TABS else next(iter(TABS))
    title, read, template = TABS[name]
    return {
        "original": task,
        "tab": name,
        "tab_title": title,
        "tab_template": f"admin/a2a_tasks/task/{template}.html",
        "tabs": [(key, each[0]) for key, each in TABS.items()],
        "query": _keep(request, "tab", "from", LIST),
        "listed": _keep(request, LIST),
        "list_query": request.GET.get(LIST, ""),
        "follows": name not in {"json", "facts"} and _goes_on(task),
        **read(request, task),
    }


def _list_related(task: Task) -> dict[str, list[str]]:
    """Return the public ids of related tasks: the references of its first message, and its repetitions."""
    first = Message.objects.filter(task=task, number=1).values_list("body", flat=True).first()
    again = AuditEntry.objects.filter(
        action=Action.TASK_RUN_AGAIN, object=task.public_id, tenant=task.tenant
    )
    found = {
        "Refers to": _references(first or ""),
        "Run again as": [
            json.loads(entry.detail)["new"] for entry in again.order_by("pk")[:RELATED]
        ],
    }
    return {words: ids for words, ids in found.items() if ids}


def _references(body: str) -> list[str]:
    """Return the public ids that a stored message refers to; none if its body cannot be parsed."""
    try:
        found = json.loads(body)["referenceTaskIds"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return []
    return [id_ for id_ in found if isinstance(id_, str)] if isinstance(found, list) else []
