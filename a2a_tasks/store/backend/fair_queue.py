"""Fair queueing: waiting runs start in rounds, and each quota key has at most one run in a round.

A quota key is a tenant, or a principal without one. A run joins the round after the present one, or, if its key has
waiting runs already, the round after the last of them. So ten thousand runs of one key fill ten thousand rounds, and
the next run of another key is in the very next round. A round gets no further runs after it has begun, so that every
round ends, and no key starves.

The round is one number in a row, set once when the run is written; a claim reads along an index in any case. See
docs/decisions/0007.
"""

from __future__ import annotations

from collections.abc import Collection

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet

from a2a_tasks.models import BEHIND, WAITS_FOR_SLOT, Run, RunStatus
from a2a_tasks.store.backend.statements import fetch
from a2a_tasks.store.sql_files import read_sql

__all__ = ["behind_another", "find_last_eligible_round", "join_round", "list_waiting_agents"]

#: Maximum number of quota keys that are read one by one. With more waiting keys, one that is not full is never far back.
MAX_KEYS = 50
NO_END = BEHIND - 1
FIND_LAST_ROUNDS = read_sql("find_last_rounds", behind=str(BEHIND))
LIST_WAITING_AGENTS = read_sql("list_waiting_agents")


def behind_another() -> Q:
    """Return the condition that an earlier run has to end first: of the same task, or in order of the same context.

    In SQL: `sql/_is_behind_another.sql`.
    """
    earlier = Run.objects.filter(
        pk__lt=OuterRef("pk"), status__in=[RunStatus.QUEUED, RunStatus.RUNNING]
    )
    return Q(Exists(earlier.filter(task=OuterRef("task")))) | Q(ordered_in__isnull=False) & Q(
        Exists(earlier.filter(ordered_in=OuterRef("ordered_in")))
    )


def join_round(queue: str, quota_key: str) -> int:
    """Return the round that a new run of this quota key joins (its twin is in `sql/_write_tasks.sql`)."""
    waiting = Run.objects.filter(WAITS_FOR_SLOT, queue=queue)
    # A run that waits for an earlier one must not count: it would delay the rounds of all keys.
    starting = waiting.exclude(behind_another()).order_by("round", "pk")
    last = waiting.filter(quota_key=quota_key).order_by("-round")
    return 1 + max(_round_of(starting), _round_of(last))


def list_waiting_agents(queue: str) -> list[str]:
    """Return the agents of which runs wait in a queue, parked ones included."""
    with connection.cursor() as cursor:
        cursor.execute(LIST_WAITING_AGENTS, {"queue": queue})
        return [agent for (agent,) in cursor.fetchall()]


def find_last_eligible_round(queue: str, full: Collection[str]) -> int | None:
    """Return the last round with a waiting run of a quota key that is not `full`; None = there is no such run.

    A claim need not read beyond it, where there may be thousands of runs of full keys. With more than MAX_KEYS waiting
    keys there is no limit, and NO_END is returned.
    """
    if not full:
        return NO_END
    found = fetch(FIND_LAST_ROUNDS, {"queue": queue, "most": MAX_KEYS})
    if len(found) == MAX_KEYS:
        return NO_END
    return max((last for key, last in found if last is not None and key not in full), default=None)


def _round_of(runs: QuerySet[Run]) -> int:
    return runs.values_list("round", flat=True).first() or 0
