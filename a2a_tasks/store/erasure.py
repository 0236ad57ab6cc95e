"""Erasing a principal's data, in small transactions; an entry of the audit log says what went.

What is held stays, and while anything does, so does the name in the audit log. Safe to end at any time, and to do again.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import msgspec
from django.db import transaction
from django.db.models import Exists, OuterRef

from a2a_tasks.audit import Action
from a2a_tasks.audit.chain import redacted
from a2a_tasks.models import AuditEntry, AuditLink, Held, Hold, Tally, Task
from a2a_tasks.protocol.errors import TaskNotCancelable, TaskNotFound
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.store import audit, audit_seals, audit_triggers, cancel
from a2a_tasks.store.holds import in_force, unheld
from a2a_tasks.store.principal import Principal
from a2a_tasks.store.purge import Removed, remove_each

__all__ = ["Erasure", "Found", "erase", "survey"]

#: Entries of the audit log in which names are replaced in one transaction.
SLICE = 500


@dataclass(frozen=True, kw_only=True)
class Found:
    """What there is of a principal."""

    tasks: int
    #: Of them, those that have not ended, and those that are held.
    running: int
    held: int
    contexts: int
    keys: int
    entries: int
    #: The principal itself is held.
    itself: bool


@dataclass(frozen=True)
class Erasure:
    """How far it has come."""

    #: What the principal is called in the audit log from now on.
    name: str
    cancelled: int = 0
    removed: Removed = field(default_factory=Removed)
    keys: int = 0
    entries: int = 0
    #: Tasks that stay: they are held, or somebody else was at them.
    left: int = 0
    #: SHA-256 over the ids of the tasks that went, one a line.
    digest: str = ""


def survey(principal: Principal) -> Found:
    """Count what `erase` would find now."""
    tasks = principal.tasks()
    return Found(
        tasks=tasks.count(),
        running=tasks.exclude(state__in=TERMINAL).count(),
        held=tasks.count() - unheld(tasks).count(),
        contexts=principal.contexts().count(),
        keys=principal.keys().count(),
        entries=principal.entries().count(),
        itself=in_force().filter(kind=Held.PRINCIPAL, name=principal.name).exists(),
    )


def erase(principal: Principal) -> Iterator[Erasure]:
    """Cancel, remove, forget; yields how far it has come after each step. The last one is the whole."""
    done = Erasure(f"erased:{secrets.token_hex(8)}")
    for done in _remove(principal, done):  # noqa: B020 - it grows
        yield done
    done = replace(done, left=principal.tasks().count())
    if not done.left and not survey(principal).itself:
        done = _forget(principal, done)
        for count in _rename(principal, done.name):
            done = replace(done, entries=done.entries + count)
            yield done
    _conclude(done)
    yield done


def _remove(principal: Principal, done: Erasure) -> Iterator[Erasure]:
    """Its tasks that are not held, with all that is beside them."""
    digest = hashlib.sha256()
    for keys in principal.slices():
        going = unheld(Task.objects.filter(pk__in=keys)).order_by("pk")
        rows = list(going.values_list("pk", "public_id", "state"))
        ended = [key for key, _, state in rows if state in TERMINAL or _cancel(key)]
        done = replace(done, cancelled=done.cancelled + sum(s not in TERMINAL for *_, s in rows))
        for removed in remove_each(ended):
            done = replace(done, removed=done.removed + removed)
            yield done
        left = set(Task.objects.filter(pk__in=ended).values_list("pk", flat=True))
        for key, name, _ in rows:
            if key not in left:
                digest.update(f"{name}\n".encode())
    yield replace(done, digest=digest.hexdigest())


def _cancel(task: int) -> bool:
    """Has it ended now? Its agent is stopped, as when its owner cancels."""
    with contextlib.suppress(TaskNotCancelable):  # it ended by itself
        try:
            cancel.cancel_by_key(task)
        except TaskNotFound:
            return False
    return True


@transaction.atomic
def _forget(principal: Principal, done: Erasure) -> Erasure:
    """What is left when there are no tasks: contexts, requests about tasks its tenant shares, counts, the key."""
    used = Task.objects.filter(context=OuterRef("pk"))
    contexts, _ = principal.contexts().exclude(Exists(used)).delete()
    if principal.tenant is None:
        _take_grants(principal)
        Tally.objects.filter(owner=principal.name).delete()
        Hold.objects.filter(kind=Held.PRINCIPAL, name=principal.name).update(name=done.name)
        Hold.objects.filter(by__in=principal.names).update(by=done.name)
        Hold.objects.filter(released_by__in=principal.names).update(released_by=done.name)
    _forget_elsewhere(principal, done.name)
    keys, _ = principal.keys().delete()
    return replace(done, keys=keys, removed=done.removed + Removed(contexts=contexts))


def _take_grants(principal: Principal) -> None:
    for row in principal.grants().select_for_update():
        row.delete()
        audit.note(
            Action.GRANT_REMOVE, row.grantee, detail={"agent": row.agent, "right": row.right}
        )


def _forget_elsewhere(principal: Principal, name: str) -> None:
    """What it left at tasks of others, which its tenant shares, and of files that still wait to be swept."""
    principal.repeats().delete()
    principal.lost_files().update(owner="", filename="")
    for run in principal.runs().iterator():
        said = msgspec.json.decode(run.request)
        if said.get("principal") == principal.name:
            run.request = write({**said, "principal": name, "scopes": []}).decode()
            run.save(update_fields=["request"])


def _rename(principal: Principal, name: str) -> Iterator[int]:
    """Replace it in the audit log by a name that says nothing: the salts go with it, so nobody can tell who it was."""
    audit_seals.seal_all()
    while rows := list(principal.entries().filter(link__isnull=False)[:SLICE]):
        yield _renamed(principal, rows, name)


@transaction.atomic
def _renamed(principal: Principal, rows: list[AuditEntry], name: str) -> int:
    """In these entries. What vouches for it is sealed with it, or verification would find a forgery."""
    links = {row.entry_id: row for row in AuditLink.objects.filter(entry__in=[r.pk for r in rows])}
    count = 0
    for row in rows:
        link = links[row.pk]
        if row.actor in principal.names:
            link.actor_salt, row.actor = redacted(link.actor_salt, row.actor), name
            count += 1
        if row.object in {*principal.names, principal.prefix} - {""}:
            link.object_salt, row.object = redacted(link.object_salt, row.object), name
            count += 1
    with audit_triggers.unlocked():
        AuditLink.objects.bulk_update(links.values(), ["actor_salt", "object_salt"])
        AuditEntry.objects.bulk_update(rows, ["actor", "object"])
    audit.note(Action.PRIVACY_ERASE, name, detail={"entries": count})
    audit_seals.seal_all()
    return len(rows)


def _conclude(done: Erasure) -> None:
    """The record that it was done."""
    counts = {
        "entries": 0,
        "tasks": done.removed.tasks,
        "contexts": done.removed.contexts,
        "rows": done.removed.rows,
        "cancelled": done.cancelled,
        "keys": done.keys,
        "left": done.left,
        "digest": done.digest,
    }
    with transaction.atomic():
        audit.note(Action.PRIVACY_ERASE, done.name, detail=counts)
