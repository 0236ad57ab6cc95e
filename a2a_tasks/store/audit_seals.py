"""Sealing: entries that are committed get their place in the chain, and the chain's end is sealed.

Numbers of rows are given before their transactions commit, so an entry may come to light after one with a higher
number. Each seal says how far it looked (`newest`), and which transactions could still bring one to light below that
(all before `horizon`). Whoever seals after these have ended leaves nothing behind there: that is the next one's `floor`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, QuerySet

from a2a_tasks.audit.chain import BEGINNING, ChainEntry, hash_link, mac, new_salts
from a2a_tasks.audit.keys import keys
from a2a_tasks.models import AuditEntry, AuditLink, AuditSeal
from a2a_tasks.store.backend.interface import backend

__all__ = ["entry_of", "newest_seal", "seal", "seal_all", "list_unsealed"]

#: Entries that are sealed in one transaction.
MAX_COUNT = 500
#: Columns of an entry that are hashed.
COLUMNS = [field.name for field in fields(ChainEntry)]
INSERT = """
insert into a2a_tasks_auditlink (number, entry_id, actor_salt, object_salt, hash) values (%s, %s, %s, %s, %s)
"""
#: Names the lock that keeps all but one from sealing (an advisory lock of PostgreSQL).
LOCK = 0x413241_5345414C


def seal(*, wait: bool = False, everywhere: bool = False) -> int:
    """Seal what is not yet, at most MAX_COUNT entries; returns how many. 0 too if somebody else is at it, unless `wait`.

    `everywhere`: also look where nothing can be any more, unless somebody took a link away.
    """
    if not wait and not list_unsealed(everywhere=everywhere).exists():
        return 0
    with transaction.atomic():
        if not backend().lock_number(LOCK, wait=wait):
            return 0
        last, through = newest_seal(), _find_horizon()
        rows = list_unsealed(everywhere=everywhere).order_by("pk").values_list(*COLUMNS)[:MAX_COUNT]
        entries = [ChainEntry(*row) for row in rows]
        if entries:
            _link(entries, last, through)
        return len(entries)


def seal_all(*, everywhere: bool = False) -> int:
    """Seal everything that is committed now; returns how many entries."""
    done = 0
    while count := seal(wait=True, everywhere=everywhere):
        done += count
    return done


def newest_seal() -> AuditSeal | None:
    """The last seal there is."""
    return AuditSeal.objects.order_by("-pk").first()


def list_unsealed(*, everywhere: bool = False) -> QuerySet[AuditEntry]:
    """Entries without a link. What cannot be without one is not looked at, unless `everywhere`."""
    unlinked = AuditEntry.objects.exclude(Exists(AuditLink.objects.filter(entry=OuterRef("pk"))))
    return unlinked if everywhere else unlinked.filter(pk__gt=_floor())


def entry_of(row: AuditEntry) -> ChainEntry:
    """Return the hashed fields of a row."""
    return ChainEntry(*(getattr(row, name) for name in COLUMNS))


def _floor() -> int:
    """Up to which number everything is sealed, for certain."""
    last = newest_seal()
    return last.floor if last else 0


def _find_horizon() -> int:
    """Up to which number no further entry can come to light: whoever looks now sees all there will be."""
    past = AuditSeal.objects.filter(horizon__lte=backend().read_snapshot("xmin")).order_by("-pk")
    return past.values_list("newest", flat=True).first() or 0


def _link(entries: Sequence[ChainEntry], last: AuditSeal | None, through: int) -> None:
    """Chain the entries, which are all up to the last of them, and seal the chain's end."""
    number, previous, newest, floor = (
        (last.number, last.hash, last.newest, last.floor) if last else (0, BEGINNING, 0, 0)
    )
    links = list(_links(entries, number, previous))
    with connection.cursor() as cursor:
        cursor.executemany(INSERT, links)
    number, *_, link = links[-1]
    AuditSeal.objects.create(
        number=number,
        hash=link,
        mac=mac(keys()[0], number, link),
        newest=max(newest, entries[-1].id),
        horizon=backend().read_snapshot("xmax"),  # asked after the entries were read
        floor=max(floor, min(through, entries[-1].id)),
    )


def _links(
    entries: Iterable[ChainEntry], number: int, previous: str
) -> Iterator[tuple[int, int, str, str, str]]:
    for entry in entries:
        number, salts = number + 1, new_salts()
        previous = hash_link(number, entry, salts, previous)
        yield number, entry.id, salts.actor, salts.object, previous
