"""The gauges from the tables, for `/metrics`: equal in all web processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from django.utils import timezone
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from a2a_console.queue.waiting import list_waiting
from a2a_push.store.statistics import read_counts
from a2a_tasks.agents import registry
from a2a_tasks.store import runs, workers
from a2a_tasks.store.budgets import list_asking
from a2a_tasks.telemetry.run_counters import OTHERS

__all__ = ["read_gauges", "say_database"]

#: Maximum number of waiting tasks that are read.
MAX_WAITING = 1000


def read_gauges() -> list[Metric]:
    """Read all gauges."""
    return [*_webhooks(), *_runs(), *_people(), *_budgets()]


def say_database(*, answered: bool, read: bool) -> list[Metric]:
    """Return the gauges about the database itself: of its answer, and of the read of all others."""
    return [
        _one("a2a_database_up", "1 if the database answers in time.", answered),
        _one("a2a_gauges_up", "1 if the other gauges from the tables were read in time.", read),
    ]


def _webhooks() -> Iterator[Metric]:
    now = read_counts()
    yield _one(
        "a2a_webhooks_due", "Webhooks with due deliveries that no process has leased.", now.due
    )
    yield _one("a2a_webhook_deliveries_pending", "Pending deliveries.", now.pending)
    yield _one(
        "a2a_webhook_late_seconds",
        "Seconds since the oldest notification that can be sent became due.",
        now.late,
    )
    yield _by(
        "a2a_webhook_receivers_blocked",
        "Receivers to which nothing, or one delivery at a time, is sent now, by reason.",
        "by",
        {"breaker": now.breakers_open, "paused": now.paused, "disabled": now.disabled},
    )


def _runs() -> Iterator[Metric]:
    yield _by(
        "a2a_runs",
        "Runs of agents that wait, are behind others, are active or parked.",
        "status",
        runs.count_by_status(),
    )
    used = registry.queues_in_use()
    serving = workers.count_serving(used, workers.list_living())
    yield _by("a2a_queue_workers", "Live processes that take work from a queue.", "queue", serving)
    loads = {queue: runs.measure_queue(queue) for queue in sorted(used | serving.keys())}
    yield _by(
        "a2a_queue_depth",
        f"Runs that wait for a slot, up to {runs.MAX_COUNTED:,}; without parked ones.",
        "queue",
        {queue: depth for queue, (depth, _) in loads.items()},
    )
    yield _by(
        "a2a_queue_oldest_seconds",
        "Seconds since the oldest run that could start became due; without parked ones.",
        "queue",
        {queue: age for queue, (_, age) in loads.items()},
    )


def _people() -> Iterator[Metric]:
    """Yield the waiting tasks by agent. The oldest tasks come first, so the first one of an agent is its oldest."""
    known, now = set(registry.slugs()), timezone.now()
    count, oldest = Counter[str](), dict[str, float]()
    for slug, since in list_waiting().values_list("agent", "status_at")[:MAX_WAITING]:
        agent = slug if slug in known else OTHERS
        count[agent] += 1
        oldest.setdefault(agent, max(0.0, (now - since).total_seconds()))
    yield _by(
        "a2a_waiting_for_people",
        f"Tasks that wait for an answer or an authorization, of the {MAX_WAITING:,} oldest.",
        "agent",
        count,
    )
    yield _by(
        "a2a_waiting_for_people_oldest_seconds",
        "Seconds since the oldest of these tasks began to wait.",
        "agent",
        oldest,
    )


def _budgets() -> Iterator[Metric]:
    yield _one(
        "a2a_budgets_asking",
        f"Budgets that wait for an operator to allow more, up to {MAX_WAITING:,}.",
        list_asking()[:MAX_WAITING].count(),
    )


def _one(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _by(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family
