"""Notices for operators: a sentence about each thing that needs attention, and where to look. All counts are bounded."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice

from django.http import HttpRequest

from a2a_console.admin.widgets.excerpt import text_of
from a2a_console.admin.widgets.formatting import mask_numbers, parse_body
from a2a_console.admin.widgets.staff import may_view
from a2a_console.excerpts import select_start
from a2a_console.queue.waiting import list_waiting
from a2a_console.search.bounded_rows import newest
from a2a_console.search.key_ranges import last_key
from a2a_console.search.stuck_tasks import find_stuck
from a2a_console.staff import may_see_traces, tenants_of
from a2a_console.statistics.counts import Narrow
from a2a_console.statistics.reports import Report
from a2a_console.times import duration
from a2a_tasks.access.auth_failures import NO_CREDENTIALS
from a2a_tasks.audit import Action
from a2a_tasks.conf import conf
from a2a_tasks.models import AuditEntry, Run, Task
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import workers

__all__ = ["FailureGroup", "Notice", "group_failures", "list_notices"]

#: The newest failed tasks that are read, and the largest number of notices of one kind.
FAILURES, GROUPS = 200, 3
#: The largest number of questions that are counted.
COUNTED = 1_000
#: The newest entries of the audit log among which refused credentials are looked for.
ENTRIES = 10_000
#: Words for kinds of stuck tasks that say enough without the name of a worker.
FATES = {
    "lost": "lost the worker",
    "silent": "said nothing for {minutes:g} minutes",
    "quarantine": "in quarantine: workers died with them",
}
#: A process that has been dead for longer is no news.
NEWS = timedelta(hours=1)
#: The largest number of characters of a reason.
LINE = 120


@dataclass(frozen=True, kw_only=True)
class Notice:
    """Something that needs attention, and the row or the list to look at."""

    sentence: str
    #: `app.model`, the key of the row (None = the list), and the filters of the list.
    model: str
    key: int | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    #: True if people are waited for, and nothing is broken.
    is_mild: bool = False


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Tasks of an agent that failed alike: their number, the words of the newest, and its key."""

    agent: str
    words: str
    count: int
    newest: int


def list_notices(
    request: HttpRequest, found: Report, narrow: Narrow, *, of_host: bool
) -> Iterator[Notice]:
    """Yield what needs attention among the rows that `narrow` leaves; with `of_host` also the processes of the host."""
    if of_host and float(conf.PRESENCE_SECONDS):
        yield from islice(_tell_dead_processes(), GROUPS)
    if of_host:
        yield from _tell_refusals(found.now)
    yield from islice(_tell_stuck(narrow), GROUPS)
    for group in group_failures(request, narrow, found.since)[:GROUPS]:
        yield Notice(
            sentence=f"{_count(group.count, 'task')} of {group.agent} failed{' alike' * (group.count > 1)}: {group.words}",
            model="a2a_tasks.task",
            key=group.newest if group.count == 1 else None,
            query={"agent": group.agent, "state": "failed", "ended": found.period.name},
        )
    for line in found.webhooks.receivers if found.webhooks else ():
        if line.dead or line.receiver.disabled_at:
            off = f"It is disabled: {line.receiver.disabled_reason[:LINE]}." * bool(
                line.receiver.disabled_at
            )
            yield Notice(
                sentence=f"{_count(line.dead, 'webhook')} for {line.receiver.address[:LINE]} got lost {found.period.words}. {off}",
                model="a2a_push.receiver",
                key=line.receiver.pk,
            )
    yield from _tell_questions(narrow, found)


def group_failures(
    request: HttpRequest, narrow: Narrow, since: datetime, agent: str = ""
) -> list[FailureGroup]:
    """Return the newest tasks that have failed since then, of one agent or of all, grouped by agent and words without numbers.

    The words are those of the exception for users who may see traces, and for others what the client was told.
    """
    rows = narrow(newest(Task.objects.all()).filter(state=TaskState.FAILED), "").order_by("-pk")
    rows = rows.filter(agent=agent) if agent else rows
    told = rows.annotate(spoke=select_start("status_message"))
    found = told.values_list("pk", "agent", "status_at", "status_text", "spoke")[:FAILURES]
    sees = may_view(request, Run) and may_see_traces(tenants_of(request.user))
    groups: dict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    for key, slug, at, fault, spoke in found:
        if at >= since:
            words = (sees and fault) or text_of(parse_body(spoke)) or "without a message"
            line = words.strip().partition("\n")[0][:LINE]
            groups[slug, mask_numbers(line)].append((key, line))
    made = (
        FailureGroup(slug, ones[0][1], len(ones), ones[0][0]) for (slug, _), ones in groups.items()
    )
    return sorted(made, key=lambda group: -group.count)


def _tell_dead_processes() -> Iterator[Notice]:
    for one in workers.list_seen():
        if one.state == "dead" and one.silence < NEWS:
            yield Notice(
                sentence=f"The {one.worker.kind} {one.worker.name} has sent no heartbeat for {duration(one.silence)}.",
                model="a2a_tasks.worker",
                key=one.worker.pk,
            )


def _tell_refusals(now: datetime) -> Iterator[Notice]:
    """Tell of refused credentials. Their callers may not: clients of MCP go on without their tools."""
    rows = AuditEntry.objects.filter(pk__gt=last_key(AuditEntry.objects.all()) - ENTRIES)
    refused = rows.filter(action=Action.ACCESS_REFUSED, created_at__gt=now - NEWS).order_by("-pk")
    details = map(json.loads, refused.values_list("detail", flat=True)[:COUNTED])
    wrong = [one for one in details if one["why"] != NO_CREDENTIALS]
    if wrong:
        total = _count(sum(one["count"] for one in wrong), "request")
        newest_one = f"the newest from {wrong[0]['address']} ({wrong[0]['why']})"
        yield Notice(
            sentence=f"{total} with refused credentials in the last hour, {newest_one}. Clients of MCP go on without tools then.",
            model="a2a_tasks.auditentry",
            query={"about": "access", "outcome": "refused"},
        )


def _tell_stuck(narrow: Narrow) -> Iterator[Notice]:
    """Tell of the stuck tasks by kind and agent, or by what they lack."""
    found = find_stuck()
    rows = narrow(Task.objects.filter(pk__in=list(found)), "").values_list("pk", "agent")
    groups = defaultdict[tuple[str, str], list[int]](list)
    for key, agent in rows:
        kind = found[key].kind
        fate = FATES.get(kind, "").format(minutes=conf.SILENT_MINUTES)
        why = f"of {agent} {fate}" if fate else f"waits: {found[key].words}"
        groups[kind, why].append(key)
    for (kind, why), keys in groups.items():
        yield Notice(
            sentence=f"{_count(len(keys), 'task')} {why if len(keys) == 1 else why.replace('waits', 'wait')}.",
            model="a2a_tasks.task",
            key=keys[0] if len(keys) == 1 else None,
            query={"stuck": kind},
        )


def _tell_questions(narrow: Narrow, found: Report) -> Iterator[Notice]:
    rows = narrow(list_waiting(), "")
    waiting = list(rows.values_list("status_at", flat=True)[:COUNTED])
    if waiting:
        more = "+" * (len(waiting) == COUNTED)
        yield Notice(
            sentence=f"{len(waiting)}{more} task{'s wait' if len(waiting) > 1 else ' waits'} for people, the oldest for {duration(found.now - waiting[0])}.",
            model="a2a_tasks.waiting",
            is_mild=True,
        )


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"
