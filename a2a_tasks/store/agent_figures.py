"""How agents do: what of each is under way and waits, and how the runs of the last hour ended. Bounded looks."""

from __future__ import annotations

import dataclasses
import datetime
import math
from collections import Counter, defaultdict
from collections.abc import Mapping

from django.db.models.functions import Now

from a2a_tasks.models import Run, RunStatus

__all__ = ["LOOKED", "Health", "Load", "health", "loads"]

#: Runs that one look counts, or looks at, the newest.
LOOKED = 10_000
#: Of what health tells.
SPAN = datetime.timedelta(hours=1)
P95 = 0.95


@dataclasses.dataclass(frozen=True, slots=True)
class Load:
    """What there is to do for an agent."""

    running: int = 0
    queued: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Health:
    """How the runs of an agent that ended in the last hour did."""

    ended: int = 0
    failed: int = 0
    #: How long 95 % of them took at the most, in seconds from their start; None = there were none.
    p95: float | None = None


def loads() -> tuple[Mapping[str, Load], bool]:
    """By slug; and whether that is all, or what LOOKED runs of each status tell."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    whole = True
    for status in (RunStatus.RUNNING, RunStatus.QUEUED):
        rows = (
            Run.objects.filter(status=status).order_by("-pk").values_list("task__agent", flat=True)
        )
        agents = Counter(rows[:LOOKED])
        whole = whole and agents.total() < LOOKED
        for agent, count in agents.items():
            found[agent][status] = count
    return {
        agent: Load(count[RunStatus.RUNNING], count[RunStatus.QUEUED])
        for agent, count in found.items()
    }, whole


def health() -> Mapping[str, Health]:
    """By slug, of the newest LOOKED runs."""
    newest = Run.objects.order_by("-pk").values_list(
        "task__agent", "status", "started_at", "ended_at", Now() - SPAN
    )
    took: dict[str, list[float]] = defaultdict(list)
    failed: Counter[str] = Counter()
    for agent, status, started, ended, since in newest[:LOOKED]:
        if ended is not None and started is not None and ended >= since:
            took[agent].append((ended - started).total_seconds())
            failed[agent] += status == RunStatus.FAILED
    return {
        agent: Health(len(seconds), failed[agent], _percentile(seconds))
        for agent, seconds in took.items()
    }


def _percentile(seconds: list[float]) -> float:
    """The nearest rank."""
    return sorted(seconds)[math.ceil(P95 * len(seconds)) - 1]
