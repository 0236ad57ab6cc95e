"""Fair queueing: runs that wait start in rounds, and nobody has more than one in a round.

A run joins the round after the one that is being started, or if its share (a tenant, or a principal without one) has
runs waiting already, the round after the last of them. So whoever queues ten thousand runs fills ten thousand rounds,
and the next one to come is in the very next of them. Who is in a round is settled before it begins: nobody can go on
joining it, so that every round ends, and nobody starves.

A number a row, set once when the run is written: a claim reads along an index as it would without. See
docs/decisions/0007.
"""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Exists, OuterRef, QuerySet

from a2a_tasks.models import Run, RunStatus
from a2a_tasks.store.backend.statements import fetch

__all__ = ["behind_another", "furthest", "join_round"]

#: So many shares are looked at one by one. Where more wait, those that are not full are never far in a queue.
SHARES = 50
NO_END = 2**63 - 1

# From one share to the next along an index, whatever each of them has in the queue: of a share's ten thousand rows
# one is read. Neither database does that by itself for "distinct".
LAST = """
with recursive waiting(share) as (
  select min(share) from a2a_tasks_run where status = 'queued'
  union all
  select (select min(r.share) from a2a_tasks_run r where r.status = 'queued' and r.share > w.share)
  from waiting w where w.share is not null
)
select w.share, (select max(r.round) from a2a_tasks_run r
  where r.status = 'queued' and r.queue = %(queue)s and r.share = w.share)
from waiting w where w.share is not null limit %(most)s
"""


def behind_another() -> Exists:
    """Is there an earlier run of the same task, which has to end first?"""
    return Exists(
        Run.objects.filter(
            task=OuterRef("task"),
            pk__lt=OuterRef("pk"),
            status__in=[RunStatus.QUEUED, RunStatus.RUNNING],
        )
    )


def join_round(queue: str, share: str) -> int:
    """The round that a new run of this share joins (its twin is in `postgres.INSERT_TASKS`)."""
    waiting = Run.objects.filter(status=RunStatus.QUEUED, queue=queue)
    # A run that waits for another one of its task would hold its round, and everybody's, for as long.
    starting = waiting.exclude(behind_another()).order_by("round", "pk")
    last = waiting.filter(share=share).order_by("-round")
    return 1 + max(_round_of(starting), _round_of(last))


def furthest(queue: str, full: Collection[str]) -> int | None:
    """The last round in which anybody has a run waiting who is not `full`; None = nobody has.

    A claim need not look beyond it, where there may be thousands of runs of those who are. Of very many shares, no end.
    """
    if not full:
        return NO_END
    found = fetch(LAST, {"queue": queue, "most": SHARES})
    if len(found) == SHARES:
        return NO_END
    return max(
        (last for share, last in found if last is not None and share not in full), default=None
    )


def _round_of(runs: QuerySet[Run]) -> int:
    return runs.values_list("round", flat=True).first() or 0
