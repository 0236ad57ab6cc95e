"""The dashboard's figures: how it stands now, what ended in a period, and the same in a few numbers.

What ended in a whole week may be a million tasks, which takes the database a second: it is kept by this process for
a moment that nobody can see on a chart of the period (a part of a slot), and so is what other apps tell; of slots that
are over, until the next slot is. For those who see all, the host has counted these up ahead (`store/sums.py`). How it
stands now is always read.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

from django.utils import timezone

from a2a_tasks.conf import conf
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import figures as store
from a2a_tasks.store import sums, workers
from a2a_tasks.store.figures import (
    PERIODS,
    TOP,
    Beside,
    Closed,
    Ended,
    Figures,
    Narrow,
    Number,
    Period,
    Rows,
    Series,
    Share,
    Waiting,
)

__all__ = ["PERIODS", "Line", "Report", "forget", "report"]

#: What ended is kept for so small a part of a slot: 10 s of half an hour, a minute of three hours.
PART = 180
#: Charts that are kept, of periods and of whoever may see different rows.
KEPT = 100

_Past = tuple[Ended, tuple[Beside, ...]]
_kept: dict[Hashable, tuple[float, _Past]] = {}
_lock = threading.Lock()


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """An agent, or a tenant: what of it ended in the period, and what is under way."""

    name: str
    ended: int
    failed: int
    p50: float | None
    p95: float | None
    running: int
    queued: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """All of it."""

    period: Period
    now: Figures
    ended: Ended
    #: The TOP of them, those with most first.
    agents: tuple[Line, ...]
    tenants: tuple[Line, ...]
    numbers: tuple[Number, ...]
    series: tuple[Series, ...]
    took: tuple[Series, ...]
    beside: tuple[Beside, ...]


def report(period: Period, narrow: Narrow, *, whose: Hashable, of_host: bool = False) -> Report:
    """Read them. `whose`: names what `narrow` leaves, for those who may be told the same.

    `of_host`: also what is of the whole host, which is for those who see all of it.
    """
    now, (ended, beside) = store.standing(narrow), _past(period, narrow, whose, of_host)
    return Report(
        period=period,
        now=now,
        ended=ended,
        agents=_lines(ended.agents, now.agents),
        tenants=_lines(ended.tenants, now.tenants),
        numbers=(*numbers(now, ended), *(processes(now) if of_host else ())),
        series=counts(ended),
        took=durations(ended),
        beside=beside,
    )


def forget() -> None:
    """Keep nothing: for tests."""
    with _lock:
        _kept.clear()


def _past(period: Period, narrow: Narrow, whose: Hashable, of_host: bool) -> _Past:
    key, clock = (period.name, whose), time.monotonic()
    with _lock:
        until, found = _kept.get(key, (0.0, None))
    if found is None or clock > until:
        ended = store.ended(period, narrow, _known(period, found, of_host))
        found = ended, store.others(period, ended.since, narrow)
        with _lock:
            if len(_kept) >= KEPT:
                _kept.clear()
            _kept[key] = (clock + period.step.total_seconds() / PART, found)
    return found


def _known(period: Period, found: _Past | None, of_host: bool) -> Closed | None:
    """Of slots that are over: what this process has, or else what the host has counted up."""
    since = period.begin(timezone.now())
    if found is not None and found[0].closed.since == since:
        return found[0].closed
    return sums.counted(period, since) if of_host else None


def _lines(shares: Iterable[Share], waiting: Mapping[str, Waiting]) -> tuple[Line, ...]:
    """Those with most that ended, then those with most under way of which nothing has."""
    known = {share.name: share for share in shares}
    rest = sorted(waiting.keys() - known.keys(), key=lambda name: -waiting[name].running)
    found = [*known.values(), *(Share(name=name, counts={}) for name in rest)][:TOP]
    return tuple(_line(share, waiting.get(share.name, Waiting(name=share.name))) for share in found)


def _line(share: Share, waiting: Waiting) -> Line:
    return Line(
        name=share.name,
        ended=share.total,
        failed=share.failed,
        p50=share.p50,
        p95=share.p95,
        running=waiting.running,
        queued=waiting.queued,
    )


def numbers(now: Figures, ended: Ended) -> tuple[Number, ...]:
    """What is said first."""
    due = [queue.oldest_due for queue in now.queues if queue.oldest_due]
    age = max(0.0, (now.now - min(due)).total_seconds()) if due else None
    words, tasks, runs = ended.period.words, "a2a_tasks.task", "a2a_tasks.run"
    whole, window = ended.whole, {"ended": ended.period.name}
    return (
        Number(
            name="running",
            label="Runs under way",
            value=now.running,
            is_bounded=True,
            rows=Rows(runs, {"status": "running"}),
        ),
        Number(
            name="queued",
            label="Runs queued",
            value=now.queued,
            is_bounded=True,
            rows=Rows(runs, {"status": "queued"}),
        ),
        Number(name="queue_age", label="Oldest of them has been due for", value=age, unit="s"),
        Number(
            name="waiting_input",
            label="Waiting for input",
            value=now.waiting_input,
            is_bounded=True,
            rows=Rows(tasks, {"state": "input-required"}),
        ),
        Number(
            name="waiting_credentials",
            label="Waiting for credentials",
            value=now.waiting_credentials,
            is_bounded=True,
            rows=Rows(tasks, {"state": "auth-required"}),
        ),
        Number(
            name="failed",
            label=f"Failed {words}",
            value=whole.failed,
            rows=Rows(tasks, {"state": "failed", **window}),
            is_bad=whole.failed > 0,
        ),
        Number(
            name="ended",
            label=f"Ended {words}",
            value=whole.total,
            rows=Rows(tasks, window),
        ),
        Number(name="p50", label="Median duration (p50)", value=whole.p50, unit="s"),
        Number(name="p95", label="p95 duration", value=whole.p95, unit="s"),
    )


def processes(now: Figures) -> Iterable[Number]:
    """How many processes are alive, and bad if none of them takes what is due; nothing if they do not say it."""
    if not float(conf.PRESENCE_SECONDS):
        return
    alive = workers.alive()
    served = {queue for one in alive if not one.draining for queue in one.queues}
    due = {queue.name for queue in now.queues if queue.oldest_due and queue.oldest_due < now.now}
    yield Number(
        name="workers",
        label="Processes alive",
        value=len(alive),
        rows=Rows("a2a_tasks.worker"),
        is_bad=not due <= served,
    )


#: The lines of the chart of ends: label, colour, states.
ENDS = (
    ("completed", "good", (TaskState.COMPLETED,)),
    ("canceled", "quiet", (TaskState.CANCELED,)),
    ("rejected", "warn", (TaskState.REJECTED,)),
    ("failed", "bad", (TaskState.FAILED,)),
)


def counts(ended: Ended) -> tuple[Series, ...]:
    """How many ended how, slot by slot."""
    return tuple(
        Series(
            label,
            colour,
            tuple(sum(slot.counts.get(s, 0) for s in states) for slot in ended.slots),
        )
        for label, colour, states in ENDS
    )


def durations(ended: Ended) -> tuple[Series, ...]:
    """How long they took, slot by slot."""
    return (
        Series("p50", "main", tuple(slot.p50 for slot in ended.slots)),
        Series("p95", "quiet", tuple(slot.p95 for slot in ended.slots)),
    )
