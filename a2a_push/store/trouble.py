"""Tasks whose webhooks are in trouble: a delivery is dead, so that somebody was not told of something."""

from __future__ import annotations

from collections.abc import Iterable

from a2a_push.models import Delivery, Status
from a2a_tasks.store.marks import Mark

__all__ = ["WEBHOOKS", "troubled"]


def troubled(most: int) -> Iterable[int]:
    """The tasks of so many of the deliveries that died last, along their own index."""
    dead = Delivery.objects.filter(status=Status.DEAD).order_by("-created_at")
    return dict.fromkeys(dead.values_list("task_id", flat=True)[:most])


WEBHOOKS = Mark("webhooks", "has dead deliveries of webhooks", troubled)
