"""The panel of a bar of the waterfall: the times of its span, its output, and what happened meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.http import HttpRequest
from django.utils import timezone

from a2a_console.admin.tasks.sources import STEP, lines_of
from a2a_console.admin.tasks.timeline import find_call, member
from a2a_console.admin.widgets.formatting import FormattedBody, escape_name, format_body, parse_body
from a2a_console.admin.widgets.lines import LineSpan, TimelineLine
from a2a_console.diagnosis.spans import Kind, Span
from a2a_console.excerpts import LIMIT, select_start, size
from a2a_console.site import page_url
from a2a_console.times import duration
from a2a_tasks.models import Event, Step, Task
from a2a_tasks.protocol.lifecycle import EventKind

__all__ = ["BarPanel", "open_panel"]

#: Most lines of a panel, and the newest events in which the call of a tool is looked for.
LINES, EVENTS = 30, 2_000
#: The pages of what spans belong to; those of most belong to a run.
PAGES = {Kind.CALL: "a2a_tasks_task_change", Kind.WEBHOOK: "a2a_push_delivery_change"}


@dataclass(frozen=True, kw_only=True)
class BarPanel:
    """The context of the template."""

    kind: str
    label: str
    note: str
    is_fault: bool
    began: datetime | None
    took: str
    #: JSON documents by name: the input of a tool, and the output of a step or a tool.
    bodies: Sequence[tuple[str, FormattedBody]]
    #: The lines of the timeline in its time, other than events.
    lines: Sequence[TimelineLine]
    #: The page of its run, task or delivery, and what that is; empty = none.
    url: str
    what: str


def open_panel(request: HttpRequest, task: Task, span: Span) -> BarPanel:
    """Return the panel of a span, which the user may see."""
    until = span.ended or timezone.now()
    began = span.began or until
    since = began - timedelta(microseconds=1)
    lines, _ = lines_of(request, LineSpan(task=task, first=1, last=0, since=since, until=until))
    page = PAGES.get(span.kind, "a2a_tasks_run_change")
    label = escape_name(span.step or span.label)
    return BarPanel(
        kind="" if label.startswith(span.kind) else span.kind,
        label=label,
        note=escape_name(span.note, LIMIT),
        is_fault=span.is_fault,
        began=span.began,
        took=duration(until - began) if span.began else "",
        bodies=list(_list_bodies(task, span, began, until)),
        lines=[line for line in lines if not span.step or line.template != STEP][-LINES:],
        url=page_url(page, span.of) if span.of else "",
        what=page.split("_")[2],
    )


def _list_bodies(
    task: Task, span: Span, began: datetime, until: datetime
) -> Iterator[tuple[str, FormattedBody]]:
    if span.kind is Kind.TOOL:
        close = timedelta(seconds=1)
        rows = Event.objects.filter(
            task_id=task.pk,
            kind=EventKind.TOOL,
            number__gt=task.last_event - EVENTS,
            created_at__range=(began - close, until + close),
        ).order_by("number")
        for body in rows.values_list(select_start("body"), flat=True)[:LINES]:
            call = find_call(parse_body(body))
            if member(call, "name") == span.label:
                text = json.dumps(member(call, "arguments"))
                if shown := format_body(text, len(text)):
                    yield "Input", shown
                break
    if span.step and span.kind not in PAGES and not span.is_fault:
        steps = Step.objects.filter(task_id=task.pk, run=span.of, name=span.step)
        for head, length in steps.values_list(select_start("result"), size("result"))[:1]:
            if shown := format_body(head, length):
                yield "Output", shown
