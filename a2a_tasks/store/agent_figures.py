"""How agents do: what of each is under way and waits, and how its tasks of the past hour ended."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Mapping

from a2a_tasks.models import Run, RunStatus
from a2a_tasks.store.figures import PERIODS, of_agents

__all__ = ["LOOKED", "Health", "Load", "health", "loads"]

#: Runs that one look counts, the newest.
LOOKED = 10_000


@dataclasses.dataclass(frozen=True, slots=True)
class Load:
    """What there is to do for an agent."""

    running: int = 0
    queued: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Health:
    """How the tasks of an agent that ended in the past hour did."""

    ended: int = 0
    failed: int = 0
    #: How long 95 % of them took at the most, in seconds from their beginning; None = there were none.
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
    """By slug, counted as the dashboard counts it."""
    return {
        agent: Health(share.total, share.failed, share.p95)
        for agent, share in of_agents(PERIODS["hour"]).items()
    }
