"""The count for totalSize: a checkpoint for each scope, and the number of tasks after it.

A checkpoint may include a task only if no row up to its id can change the count any more: the task is so old that every
transaction of its time has ended, and no older row may still become a task.
"""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Collection
from typing import Any

from django.db import transaction
from django.db.models import F, Max, QuerySet
from django.db.models.functions import Now

from a2a_tasks.caller import OwnerScope
from a2a_tasks.models import Tally, Task
from a2a_tasks.protocol.lifecycle import TERMINAL

__all__ = ["forget", "total"]

#: A time longer than any transaction of the host.
SETTLED = datetime.timedelta(minutes=5)
#: The number of tasks after the checkpoint from which it is advanced.
STRIDE = 500


def _where(scope: OwnerScope) -> dict[str, str]:
    return {"tenant": scope.tenant, "owner": scope.owner, "agent": scope.agent}


def total(scope: OwnerScope) -> int:
    """Return the number of the scope's tasks."""
    tally = Tally.objects.filter(**_where(scope)).first() or Tally(**_where(scope))
    fresh = Task.objects.filter(**_where(scope), is_task=True, pk__gt=tally.through).count()
    if fresh > STRIDE:
        _move(tally)
    return tally.total + fresh


def _horizon() -> int:
    """Return the highest id up to which no row can still become a task."""
    settled = Task.objects.filter(created_at__lt=Now() - SETTLED).aggregate(Max("pk"))["pk__max"]
    undecided = (
        Task.objects.filter(is_task=False).exclude(state__in=TERMINAL).order_by("pk").first()
    )
    return min(settled or 0, undecided.pk - 1 if undecided else settled or 0)


def _move(tally: Tally) -> None:
    """Advance the checkpoint, if it can include more tasks."""
    horizon = _horizon()
    if _filter_passed(tally, horizon).exists():
        Tally.objects.get_or_create(**_where_of(tally))
        _count(tally, horizon)


def _filter_passed(tally: Tally, horizon: int) -> QuerySet[Task]:
    return Task.objects.filter(
        **_where_of(tally), is_task=True, pk__gt=tally.through, pk__lte=horizon
    )


@transaction.atomic
def _count(tally: Tally, horizon: int) -> None:
    """Advance the checkpoint. Its row is locked before the count, so that concurrent deletions wait for the new value."""
    locked = Tally.objects.filter(**_where_of(tally)).select_for_update().get()
    total = locked.total + _filter_passed(locked, horizon).count()
    Tally.objects.filter(pk=locked.pk, through__lt=horizon).update(through=horizon, total=total)


def _where_of(row: Tally | Task) -> dict[str, Any]:
    return {"tenant": row.tenant, "owner": row.owner, "agent": row.agent}


def forget(tasks: Collection[Task]) -> None:
    """Subtract tasks from the checkpoints that include them, in the deleting transaction, before the deletion."""
    counted: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for task in tasks:
        if task.is_task:
            counted[tuple(_where_of(task).values())].append(task.pk)
    # The query may find more rows than needed; every transaction locks them in one order.
    found = Tally.objects.filter(
        tenant__in={tenant for tenant, _, _ in counted},
        owner__in={owner for _, owner, _ in counted},
        agent__in={agent for _, _, agent in counted},
    )
    for tally in found.order_by("pk").select_for_update():
        keys = counted.get(tuple(_where_of(tally).values()), [])
        passed = sum(key <= tally.through for key in keys)
        if passed:
            Tally.objects.filter(pk=tally.pk).update(total=F("total") - passed)
