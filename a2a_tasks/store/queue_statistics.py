"""PostgreSQL's statistics of the queue. It plans statements by them.

The queue is empty most of the time, and PostgreSQL then rates an index of queued runs as empty, and so as the cheapest one. After
a burst, claims, sends and ends would read all waiting runs. Autovacuum counts a large table again after many changes only.
See docs/decisions/0055.
"""

from __future__ import annotations

import logging
import time

from django.db import connection

from a2a_tasks.models import Run, RunStatus
from a2a_tasks.store.backend.server import is_server, lock_number
from a2a_tasks.store.backend.sessions import SPEED, allow_bytes
from a2a_tasks.store.backend.statements import fetch

__all__ = ["renew"]

logger = logging.getLogger(__name__)
#: Number of queued runs of which PostgreSQL must know at least, if there are MANY.
FEW, MANY = 500, 2000
#: Seconds until the next try of this process, if the last one was in vain, and the most that a count may take.
REST, PATIENCE = 60.0, 60
#: The lock under which one process counts.
COUNTING = 0x0A2B << 32
KNOWN = """
select (select reltuples::bigint from pg_class where oid = to_regclass('run_due_by_round'))
"""


class _Last:
    """The last count of this process: the end of the rest after it."""

    ends = 0.0


def renew() -> bool:
    """Let PostgreSQL count the runs again if it knows of few queued ones, and there are many; return True if so.

    Its plans, also those of prepared statements, are made anew then.
    """
    now = time.monotonic()
    if not is_server() or now < _Last.ends:
        return False
    ((known,),) = fetch(KNOWN, [])
    if known is None or known >= FEW:
        return False
    if len(Run.objects.filter(status=RunStatus.QUEUED).values_list("pk")[:MANY]) < MANY:
        return False
    with allow_bytes(PATIENCE * SPEED), connection.cursor() as cursor:
        if not lock_number(COUNTING, wait=False):
            return False
        _Last.ends = now + REST
        cursor.execute("analyze (skip_locked) a2a_tasks_run")
    logger.info("PostgreSQL has counted the queued runs again: it knew of %s", max(known, 0))
    return True
