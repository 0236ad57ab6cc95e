"""The selection of deliveries by an operator."""

from __future__ import annotations

import datetime
from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import QuerySet

from a2a_push.models import Delivery, DeliveryStatus

__all__ = ["DeliverySelection"]


@dataclass(frozen=True, kw_only=True)
class DeliverySelection:
    """A selection of deliveries that can be sent again; all given conditions apply.

    It excludes pending deliveries, and those whose webhook was deleted.
    """

    #: True for dead deliveries only; False includes delivered ones.
    only_dead: bool = True
    #: Values of `webhook-id`.
    ids: Collection[str] | None = None
    #: Public id of the task.
    task: str = ""
    #: Slug of the agent.
    agent: str = ""
    receiver: int | None = None
    #: The address of receivers of any tenant.
    address: str = ""
    config: int | None = None
    #: The time of creation: from `since` on, and before `until`.
    since: datetime.datetime | None = None
    until: datetime.datetime | None = None

    def rows(self) -> QuerySet[Delivery]:
        """Return the deliveries, oldest first."""
        statuses = (
            [DeliveryStatus.DEAD]
            if self.only_dead
            else [DeliveryStatus.DEAD, DeliveryStatus.DELIVERED]
        )
        rows = Delivery.objects.filter(status__in=statuses, config__isnull=False)
        lookups = {
            "webhook_id__in": self.ids,
            "task__public_id": self.task or None,
            "task__agent": self.agent or None,
            "receiver": self.receiver,
            "receiver__address": self.address or None,
            "config": self.config,
            "created_at__gte": self.since,
            "created_at__lt": self.until,
        }
        given = {name: value for name, value in lookups.items() if value is not None}
        return rows.filter(**given).order_by("pk")

    def keys(self) -> list[int]:
        """Return the primary keys of the deliveries, oldest first."""
        return list(self.rows().values_list("pk", flat=True))
