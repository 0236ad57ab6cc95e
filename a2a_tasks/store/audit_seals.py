"""Sealing of the audit log: committed entries get a place in the chain, and the end of the chain is sealed.

Row numbers are assigned before transactions commit, so an entry may become visible after one with a higher number.
Each seal records the highest number it has seen (`newest`), and the transactions that may still add an entry below it
(all before `horizon`). A seal made after these have ended covers all entries up to that number, which becomes the
`floor` of the next seal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from a2a_tasks.audit.chain import BEGINNING, ChainEntry, hash_link, mac, new_salts
from a2a_tasks.audit.keys import keys
from a2a_tasks.models import AuditEntry, AuditLink, AuditSeal
from a2a_tasks.store.backend.server import lock_number, read_snapshot

__all__ = ["entry_of", "newest_seal", "seal", "seal_all", "list_unsealed"]

#: Maximum number of entries sealed in one transaction.
MAX_COUNT = 500
#: Columns of an entry that are hashed.
COLUMNS = [field.name for field in fields(ChainEntry)]
#: The number of the lock under which one process at a time seals (an advisory lock of PostgreSQL).
LOCK = 0x413241_5345414C


def seal(*, wait: bool = False, everywhere: bool = False) -> int:
    """Seal entries that have no link yet, at most MAX_COUNT; return their number.

    If another process is sealing, wait for it with `wait`, else return 0. `everywhere`: search the whole log, also below
    the floor, where an entry has no link only if its link was deleted by hand.
    """
    if not wait and not list_unsealed(everywhere=everywhere).exists():
        return 0
    with transaction.atomic():
        if not lock_number(LOCK, wait=wait):
            return 0
        last, through = newest_seal(), _find_horizon()
        rows = list_unsealed(everywhere=everywhere).order_by("pk").values_list(*COLUMNS)[:MAX_COUNT]
        entries = [ChainEntry(*row) for row in rows]
        if entries:
            _link(entries, last, through)
        return len(entries)


def seal_all(*, everywhere: bool = False) -> int:
    """Seal all entries that are committed now; return their number."""
    done = 0
    while count := seal(wait=True, everywhere=everywhere):
        done += count
    return done


def newest_seal() -> AuditSeal | None:
    """Return the newest seal; None if there is none."""
    return AuditSeal.objects.order_by("-pk").first()


def list_unsealed(*, everywhere: bool = False) -> QuerySet[AuditEntry]:
    """Return the entries without a link. Only `everywhere` includes entries below the floor, which all have one."""
    unlinked = AuditEntry.objects.exclude(Exists(AuditLink.objects.filter(entry=OuterRef("pk"))))
    last = None if everywhere else newest_seal()
    return unlinked.filter(pk__gt=last.floor) if last else unlinked


def entry_of(row: AuditEntry) -> ChainEntry:
    """Return the hashed fields of a row."""
    return ChainEntry(*(getattr(row, name) for name in COLUMNS))


def _find_horizon() -> int:
    """Return the number up to which no further entry can become visible."""
    past = AuditSeal.objects.filter(horizon__lte=read_snapshot("xmin")).order_by("-pk")
    return past.values_list("newest", flat=True).first() or 0


def _link(entries: Sequence[ChainEntry], last: AuditSeal | None, through: int) -> None:
    """Chain the entries, which are all unsealed ones up to the last of them, and seal the end of the chain."""
    number, previous, newest, floor = (
        (last.number, last.hash, last.newest, last.floor) if last else (0, BEGINNING, 0, 0)
    )
    links = list(_links(entries, number, previous))
    AuditLink.objects.bulk_create(links)
    end = links[-1]
    AuditSeal.objects.create(
        number=end.number,
        hash=end.hash,
        mac=mac(keys()[0], end.number, end.hash),
        newest=max(newest, entries[-1].id),
        horizon=read_snapshot("xmax"),  # read after the entries
        floor=max(floor, min(through, entries[-1].id)),
    )


def _links(entries: Iterable[ChainEntry], number: int, previous: str) -> Iterator[AuditLink]:
    for entry in entries:
        number, salts = number + 1, new_salts()
        previous = hash_link(number, entry, salts, previous)
        yield AuditLink(
            number=number,
            entry_id=entry.id,
            actor_salt=salts.actor,
            object_salt=salts.object,
            hash=previous,
        )
