"""totalSize without counting everything: a checkpoint per scope, and a count of what came after it.

A checkpoint may pass a task only when nothing at or below its id can change the count any more: it is old enough
that every transaction of its time has ended, and no older row waits to become a task.
"""

from __future__ import annotations

import datetime

from django.db import IntegrityError, transaction
from django.db.models import Max
from django.db.models.functions import Now

from a2a_tasks.caller import Scope
from a2a_tasks.models import Tally, Task
from a2a_tasks.protocol.lifecycle import TERMINAL

__all__ = ["total"]

#: No transaction of the host lives this long.
SETTLED = datetime.timedelta(minutes=5)
#: Tasks after the checkpoint worth moving it for.
STRIDE = 500


def _where(scope: Scope) -> dict[str, str]:
    return {"tenant": scope.tenant, "owner": scope.owner, "agent": scope.agent}


def total(scope: Scope) -> int:
    """How many tasks the scope has."""
    tally = Tally.objects.filter(**_where(scope)).first() or Tally(**_where(scope))
    fresh = Task.objects.filter(**_where(scope), is_task=True, pk__gt=tally.through).count()
    if fresh > STRIDE:
        _move(tally)
    return tally.total + fresh


def _horizon() -> int:
    """The newest id below which no row can still become a task."""
    settled = Task.objects.filter(created_at__lt=Now() - SETTLED).aggregate(Max("pk"))["pk__max"]
    undecided = (
        Task.objects.filter(is_task=False).exclude(state__in=TERMINAL).order_by("pk").first()
    )
    return min(settled or 0, undecided.pk - 1 if undecided else settled or 0)


def _move(tally: Tally) -> None:
    """Advance the checkpoint; whoever loses a race leaves it to the winner."""
    horizon, before = _horizon(), tally.through
    passed = Task.objects.filter(
        tenant=tally.tenant,
        owner=tally.owner,
        agent=tally.agent,
        is_task=True,
        pk__gt=before,
        pk__lte=horizon,
    ).count()
    if not passed:
        return
    if tally.pk:
        Tally.objects.filter(pk=tally.pk, through=before).update(
            through=horizon, total=tally.total + passed
        )
        return
    try:
        with transaction.atomic():
            Tally.objects.create(
                tenant=tally.tenant,
                owner=tally.owner,
                agent=tally.agent,
                through=horizon,
                total=passed,
            )
    except IntegrityError:
        pass  # another process made it first
