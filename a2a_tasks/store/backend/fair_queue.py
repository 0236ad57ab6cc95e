"""Fair queueing: waiting runs start in rounds, and each share has at most one run in a round.

A share is a tenant, or a principal without one. A run joins the round after the present one, or, if its share has
waiting runs already, the round after the last of them. So ten thousand runs of one share fill ten thousand rounds, and
the next run of another share is in the very next round. A round gets no further runs after it has begun, so that every
round ends, and no share starves.

The round is one number in a row, set once when the run is written; a claim reads along an index in any case. See
docs/decisions/0007.
"""

from __future__ import annotations

from collections.abc import Collection

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet

from a2a_tasks.models import BEHIND, WAITS_FOR_SLOT, Run, RunStatus
from a2a_tasks.store.backend.statements import fetch

__all__ = [
    "IS_BEHIND_ANOTHER",
    "behind_another",
    "find_last_eligible_round",
    "join_round",
    "list_waiting_agents",
]

#: Maximum number of shares that are read one by one. With more waiting shares, one that is not full is never far back.
SHARES = 50
NO_END = BEHIND - 1

# The last round of each waiting share. The recursion steps along an index from one share to the next, so that one of a
# share's ten thousand rows is read. Neither database does this by itself for "distinct".
LAST = f"""
with recursive waiting(share) as (
  select min(share) from a2a_tasks_run where status = 'queued'
  union all
  select (select min(r.share) from a2a_tasks_run r where r.status = 'queued' and r.share > w.share)
  from waiting w where w.share is not null
)
select w.share, (select max(r.round) from a2a_tasks_run r
  where r.status = 'queued' and r.queue = %(queue)s and r.share = w.share and r.round < {BEHIND})
from waiting w where w.share is not null limit %(most)s
"""  # noqa: S608 - a constant


# The agents of which runs wait in a queue, by the same steps.
WAITING_AGENTS = """
with recursive waiting(agent) as (
  select min(agent) from a2a_tasks_run where status = 'queued' and queue = %(queue)s
  union all
  select (select min(r.agent) from a2a_tasks_run r where r.status = 'queued' and r.queue = %(queue)s and r.agent > w.agent)
  from waiting w where w.agent is not null
)
select agent from waiting where agent is not null
"""

#: The condition in SQL that run `r` has to wait for an earlier one, of its task or in order of its context. Such a run
#: has the round BEHIND, which claims do not read. But of two messages that are accepted at the same moment, the second
#: may not have seen the first. Runs get their ids while the row of their context is locked, so that a transaction that
#: sees a run sees all earlier ones.
IS_BEHIND_ANOTHER = """(exists (select from a2a_tasks_run e where e.task_id = r.task_id and e.id < r.id
      and e.status in ('queued', 'running'))
    or r.ordered_in is not null and exists (select from a2a_tasks_run e where e.ordered_in = r.ordered_in
      and e.id < r.id and e.status in ('queued', 'running')))"""


def behind_another() -> Q:
    """Return the condition that an earlier run has to end first: of the same task, or in order of the same context."""
    earlier = Run.objects.filter(
        pk__lt=OuterRef("pk"), status__in=[RunStatus.QUEUED, RunStatus.RUNNING]
    )
    return Q(Exists(earlier.filter(task=OuterRef("task")))) | Q(ordered_in__isnull=False) & Q(
        Exists(earlier.filter(ordered_in=OuterRef("ordered_in")))
    )


def join_round(queue: str, share: str) -> int:
    """Return the round that a new run of this share joins (its twin is in `postgres.INSERT_TASKS`)."""
    waiting = Run.objects.filter(WAITS_FOR_SLOT, queue=queue)
    # A run that waits for an earlier one must not count: it would delay the rounds of all shares.
    starting = waiting.exclude(behind_another()).order_by("round", "pk")
    last = waiting.filter(share=share).order_by("-round")
    return 1 + max(_round_of(starting), _round_of(last))


def list_waiting_agents(queue: str) -> list[str]:
    """Return the agents of which runs wait in a queue, parked ones included."""
    with connection.cursor() as cursor:
        cursor.execute(WAITING_AGENTS, {"queue": queue})
        return [agent for (agent,) in cursor.fetchall()]


def find_last_eligible_round(queue: str, full: Collection[str]) -> int | None:
    """Return the last round with a waiting run of a share that is not `full`; None = there is no such run.

    A claim need not read beyond it, where there may be thousands of runs of full shares. With more than SHARES waiting
    shares there is no limit, and NO_END is returned.
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
