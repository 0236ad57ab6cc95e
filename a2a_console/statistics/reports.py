"""The statistics of the host: unfinished work, tasks that ended in a period, and webhooks.

A million tasks may have ended, so their counts are kept for a small part of a slot. Unfinished work is always read.
"""

from __future__ import annotations

import datetime
import time
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from django.utils import timezone

from a2a_console.statistics.counts import (
    PERIODS,
    Ended,
    Narrow,
    Number,
    Period,
    RunGroup,
    TooMany,
    count_ended,
    count_runs,
    count_waiting,
    limit_reads,
)
from a2a_console.statistics.webhooks import WebhookStatistics, report_webhooks
from a2a_tasks.conf import conf
from a2a_tasks.models import RunStatus
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import workers

__all__ = ["TASKS", "TOP", "Line", "Report", "forget", "report", "report_agents"]

#: The largest number of agents and of tenants in a report: those of which most ended.
TOP = 20
#: The part of a slot for which the counts of ended tasks are kept: 10 s of half an hour, a minute of three hours.
PART = 180
#: The largest number of kept results: one for each period and each set of rows that users see.
KEPT = 100
TASKS, RUNS, WORKERS = "a2a_tasks.task", "a2a_tasks.run", "a2a_tasks.worker"
#: The states in the chart of tasks that ended, from the bottom to the top.
STATES = (TaskState.COMPLETED, TaskState.CANCELED, TaskState.REJECTED, TaskState.FAILED)


@dataclass(frozen=True, slots=True)
class Line:
    """An agent, a tenant or a queue: its tasks that ended in the period, and its unfinished runs."""

    name: str = ""
    ended: int = 0
    #: Tasks whose state is failed; a rejected one is a decision of the agent.
    failed: int = 0
    running: int = 0
    queued: int = 0
    parked: int = 0
    oldest_due: datetime.datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """All statistics."""

    period: Period
    now: datetime.datetime
    #: The begin of the first slot.
    since: datetime.datetime
    #: False: too much ended in the period to be counted in time, and some of its statistics are missing.
    complete: bool
    numbers: Sequence[Number]
    #: By state how many tasks ended, slot by slot.
    series: Mapping[str, Sequence[int]]
    queues: Sequence[Line]
    agents: Sequence[Line]
    tenants: Sequence[Line]
    webhooks: WebhookStatistics | None


#: The begin of the period, the tasks that ended, and webhooks; None = too many to be counted in time.
_Past = tuple[datetime.datetime, Ended | None, WebhookStatistics | None]
_kept: dict[Hashable, tuple[float, _Past]] = {}


def report(period: Period, narrow: Narrow, *, whose: Hashable, of_host: bool = False) -> Report:
    """Return the statistics of the rows that `narrow` leaves.

    Users who see the same rows have equal values of `whose`, and share results. `of_host`: also the processes of the whole host, for users who see all rows.
    """
    now, runs = timezone.now(), count_runs(narrow)
    since, past, webhooks = _read_past(period, narrow, whose)
    ended, queues = past or Ended(), _make_lines("queue", runs, {})
    return Report(
        period=period,
        now=now,
        since=since,
        complete=webhooks is not None,
        numbers=(
            *_number_unfinished(now, runs, narrow),
            *(_number_ended(period, past) if past else ()),
            *(_number_processes() if of_host else ()),
        ),
        series={
            state.word: [ended.slots[begin, state] for begin in period.list_slots(since)]
            for state in (STATES if past else ())
        },
        queues=sorted(queues, key=lambda line: line.name),
        agents=_make_lines("agent", runs, ended.agents)[:TOP],
        tenants=_make_lines("tenant", runs, ended.tenants)[:TOP],
        webhooks=webhooks,
    )


def report_agents() -> Mapping[str, Line]:
    """Return the lines of all agents for the past hour, by slug."""
    period, ended = PERIODS["hour"], Ended()
    everything: Narrow = lambda rows, _: rows  # noqa: E731 - its type is written once
    with suppress(TooMany), limit_reads():
        ended = count_ended(period, period.begin(timezone.now()), everything)
    return {line.name: line for line in _make_lines("agent", count_runs(everything), ended.agents)}


def forget() -> None:
    """Keep nothing (for tests)."""
    _kept.clear()


def _read_past(period: Period, narrow: Narrow, whose: Hashable) -> _Past:
    key, clock = (period.name, whose), time.monotonic()
    until, past = _kept.get(key, (0.0, None))
    if past is None or clock > until:
        since, ended, webhooks = period.begin(timezone.now()), None, None
        with suppress(TooMany), limit_reads():
            ended = count_ended(period, since, narrow)
            webhooks = report_webhooks(period, since, narrow)
        past = since, ended, webhooks
        if len(_kept) >= KEPT:
            _kept.clear()
        _kept[key] = (clock + period.step.total_seconds() / PART, past)
    return past


def _make_lines(
    by: str, runs: Iterable[RunGroup], ended: Mapping[str, Mapping[TaskState, int]]
) -> list[Line]:
    """Return a line for each name: those of which most ended first, then those with most under way."""
    groups = defaultdict[str, list[RunGroup]](list)
    for group in runs:
        groups[getattr(group, by)].append(group)
    lines = [_make_line(name, groups[name], ended.get(name, {})) for name in {*groups, *ended}]
    return sorted(lines, key=lambda line: (-line.ended, -line.running, line.name))


def _make_line(name: str, runs: Sequence[RunGroup], ended: Mapping[TaskState, int]) -> Line:
    counts = Counter[str]()
    for group in runs:
        counts[group.status] += group.number
    due = (group.oldest_due for group in runs if group.status == RunStatus.QUEUED)
    return Line(
        name=name,
        ended=sum(ended.values()),
        failed=ended.get(TaskState.FAILED, 0),
        running=counts[RunStatus.RUNNING],
        queued=counts[RunStatus.QUEUED],
        parked=counts["parked"],
        oldest_due=min(due, default=None),
    )


def _number_unfinished(
    now: datetime.datetime, runs: Sequence[RunGroup], narrow: Narrow
) -> Iterator[Number]:
    whole = _make_line("", runs, {})
    for status, label, value in (
        ("running", "Runs under way", whole.running),
        ("queued", "Runs queued", whole.queued),
        ("parked", "Runs parked", whole.parked),
    ):
        yield Number(status, label, value, RUNS, {"status": status}, is_bounded=True)
    age = max(0.0, (now - whole.oldest_due).total_seconds()) if whole.oldest_due else None
    yield Number("queue_age", "Oldest queued run waiting", age, unit="s")
    for state, what in (
        (TaskState.INPUT_REQUIRED, "input"),
        (TaskState.AUTH_REQUIRED, "credentials"),
    ):
        value, query = count_waiting(state, narrow), {"state": state.word}
        yield Number(f"waiting_{what}", f"Waiting for {what}", value, TASKS, query, is_bounded=True)


def _number_ended(period: Period, ended: Ended) -> Iterator[Number]:
    whole, query = Counter[TaskState](), {"ended": period.name}
    for counts in ended.agents.values():
        whole += counts
    failed, words = whole[TaskState.FAILED], {"state": TaskState.FAILED.word, **query}
    yield Number("failed", f"Failed {period.words}", failed, TASKS, words, is_bad=failed > 0)
    yield Number("ended", f"Ended {period.words}", whole.total(), TASKS, query)


def _number_processes() -> Iterator[Number]:
    """Yield the number of live processes; nothing if processes do not report themselves."""
    if float(conf.PRESENCE_SECONDS):
        yield Number("workers", "Processes alive", len(workers.list_living()), WORKERS)
