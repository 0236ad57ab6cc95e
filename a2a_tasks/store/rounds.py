"""Fair queueing: runs that wait start in rounds, and nobody has more than one in a round.

A run joins the round after the one that is being started, or if its share (a tenant, or a principal without one) has
runs waiting already, the round after the last of them. So whoever queues ten thousand runs fills ten thousand rounds,
and the next one to come is in the very next of them. Who is in a round is settled before it begins: nobody can go on
joining it, so that every round ends, and nobody starves.

A number a row, set once when the run is written: a claim reads along an index as it would without. See
docs/decisions/0108.
"""

from __future__ import annotations

from django.db.models import Exists, OuterRef, QuerySet

from a2a_tasks.models import Run, RunStatus

__all__ = ["behind_another", "joined"]


def behind_another() -> Exists:
    """Is there an earlier run of the same task, which has to end first?"""
    return Exists(
        Run.objects.filter(
            task=OuterRef("task"),
            pk__lt=OuterRef("pk"),
            status__in=[RunStatus.QUEUED, RunStatus.RUNNING],
        )
    )


def joined(queue: str, share: str) -> int:
    """The round that a new run of this share joins (its twin is in `accept.ACCEPT`)."""
    waiting = Run.objects.filter(status=RunStatus.QUEUED, queue=queue)
    # A run that waits for another one of its task would hold its round, and everybody's, for as long.
    starting = waiting.exclude(behind_another()).order_by("round", "pk")
    last = waiting.filter(share=share).order_by("-round")
    return 1 + max(_round_of(starting), _round_of(last))


def _round_of(runs: QuerySet[Run]) -> int:
    return runs.values_list("round", flat=True).first() or 0
