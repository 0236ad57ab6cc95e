"""Refused writes: with a full disk, on a standby or after rights were revoked, the database still takes reads.

A process remembers the last write that was refused for such a reason. `/readyz` then tries a write of its own until one
succeeds, so that a process without requests notices the end, too.
"""

from __future__ import annotations

import os
import threading
import time

from django.db.models.functions import Now

from a2a_tasks import process
from a2a_tasks.models import Worker, WorkerKind
from a2a_tasks.store.backend.server import may_write
from a2a_tasks.store.workers import MAX_NAME_LENGTH

__all__ = ["REVOKED", "are_writes_refused", "note_refusal", "try_to_write"]

#: SQLSTATE of a statement for which the host's role has no right.
REVOKED = "42501"
#: SQLSTATEs: read-only transaction, disk full, insufficient privilege.
REFUSALS = {"25006", "53100", REVOKED}
#: The beginnings of the same errors' names in SQLite.
SQLITE_REFUSALS = ("SQLITE_FULL", "SQLITE_READONLY")
#: Random bytes of the row that is written, in hexadecimal digits: more than the free room of a page.
PADDING = 32 * 1024
#: Minimum seconds between two tries, however often `/readyz` is asked.
BETWEEN_SECONDS = 1.0


class _Refusal:
    """The last refusal of this process."""

    def __init__(self) -> None:
        self.lasts, self.next_try = False, 0.0
        self.lock = threading.Lock()


_refusal = _Refusal()


def note_refusal(fault: BaseException) -> None:
    """Remember the fault if it says that the database takes no writes."""
    state = getattr(fault.__cause__, "sqlstate", None)
    name = getattr(fault.__cause__, "sqlite_errorname", "")
    if state in REFUSALS or name.startswith(SQLITE_REFUSALS):
        _refusal.lasts = True


def are_writes_refused() -> bool:
    """Return whether a write was refused, and none of `try_to_write` has succeeded since."""
    return _refusal.lasts


def try_to_write() -> None:
    """Write a row and delete it, in two transactions; forget the refusal if both succeed. Raises DatabaseError.

    It is also kept while rights are missing, since these may be those of other tables than the row's.
    The row is that of a process which has left: lists do not show it, and if it stays, it goes with these.
    """
    with _refusal.lock:
        if time.monotonic() < _refusal.next_try:
            return
        _refusal.next_try = time.monotonic() + BETWEEN_SECONDS
    name = f"probe of {process.name()}"[:MAX_NAME_LENGTH]
    row = {
        "kind": WorkerKind.WEB,
        "host": "",
        "pid": os.getpid(),
        "agents": {"": os.urandom(PADDING).hex()},
        "left_at": Now(),
    }
    Worker.objects.update_or_create(name=name, defaults=row)
    Worker.objects.filter(name=name).delete()
    _refusal.lasts = not may_write()
