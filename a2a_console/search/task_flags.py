"""Marks: conditions on tasks that are no columns of theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from a2a_push.models import Delivery, DeliveryStatus

__all__ = ["MARKS", "MAX_COUNT", "TaskFlag", "find_troubled"]

#: The largest number of rows that a mark reads, the newest ones: it finds at most so many tasks.
MAX_COUNT = 5_000


@dataclass(frozen=True)
class TaskFlag:
    """A mark: its name in URLs, its label, and a function that returns the keys of the newest tasks with it."""

    name: str
    words: str
    tasks: Callable[[int], Iterable[int]]


def find_troubled(limit: int) -> Iterable[int]:
    """Return the tasks of the newest dead deliveries, along their own index."""
    dead = Delivery.objects.filter(status=DeliveryStatus.DEAD).order_by("-created_at")
    return dict.fromkeys(dead.values_list("task_id", flat=True)[:limit])


#: All marks by name.
MARKS = {
    mark.name: mark
    for mark in (TaskFlag("webhooks", "has dead deliveries of webhooks", find_troubled),)
}
