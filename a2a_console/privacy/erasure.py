"""The erasure of a principal's data, in small transactions; an entry of the audit log records it.

Data under a legal hold stays, and while any stays, so does the name in the audit log. The erasure may be interrupted at
any time, and repeated.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import msgspec
from django.db import transaction
from django.db.models import Case, Exists, F, OuterRef, Value, When

from a2a_console.privacy.principal import Principal
from a2a_tasks.audit import Action
from a2a_tasks.audit.chain import redact
from a2a_tasks.models import (
    AuditEntry,
    AuditLink,
    Budget,
    BudgetShare,
    BudgetUse,
    Context,
    Held,
    Hold,
    Tally,
    Task,
    Usage,
)
from a2a_tasks.protocol.errors import TaskNotCancelable, TaskNotFound
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.store import audit, audit_seals, audit_triggers, cancel
from a2a_tasks.store.conversations import sweep_lists
from a2a_tasks.store.legal_holds import exclude_held, in_force
from a2a_tasks.store.purge import Removed, remove_each

__all__ = ["Erasure", "ErasurePlan", "erase", "survey"]

#: The number of audit entries in which names are replaced in one transaction.
SLICE = 500


@dataclass(frozen=True, kw_only=True)
class ErasurePlan:
    """The counts of a principal's data before an erasure."""

    tasks: int
    #: The numbers of tasks that have not ended, and of tasks under a hold.
    running: int
    held: int
    contexts: int
    keys: int
    entries: int
    #: True if the principal itself is under a hold.
    itself: bool


@dataclass(frozen=True)
class Erasure:
    """The progress of an erasure."""

    #: The name that replaces the principal in the audit log.
    name: str
    cancelled: int = 0
    removed: Removed = field(default_factory=Removed)
    keys: int = 0
    entries: int = 0
    #: The number of tasks that stay: they are under a hold, or were created meanwhile.
    left: int = 0
    #: SHA-256 of the ids of the removed tasks, one per line.
    digest: str = ""


def survey(principal: Principal) -> ErasurePlan:
    """Count the data that `erase` would find now."""
    tasks = principal.tasks()
    return ErasurePlan(
        tasks=tasks.count(),
        running=tasks.exclude(state__in=TERMINAL).count(),
        held=tasks.count() - exclude_held(tasks).count(),
        contexts=principal.contexts().count(),
        keys=principal.keys().count(),
        entries=principal.entries().count(),
        itself=in_force().filter(kind=Held.PRINCIPAL, name=principal.name).exists(),
    )


def erase(principal: Principal) -> Iterator[Erasure]:
    """Cancel and remove the tasks, remove the rest, replace the name. Yield the progress after each step."""
    done = Erasure(f"erased:{secrets.token_hex(8)}")
    for done in _remove(principal, done):  # noqa: B020 - each step replaces the progress
        yield done
    done = replace(done, left=principal.tasks().count())
    if not done.left and not survey(principal).itself:
        done = _forget(principal, done)
        while _rename_usage(principal, done.name):
            yield done
        for count in _rename(principal, done.name):
            done = replace(done, entries=done.entries + count)
            yield done
    while rows := sweep_lists(SLICE):  # of conversations that have just been removed
        done = replace(done, removed=done.removed + Removed(rows=rows))
        yield done
    _conclude(done)
    yield done


def _remove(principal: Principal, done: Erasure) -> Iterator[Erasure]:
    """Remove the tasks that are not under a hold, with their related rows."""
    digest = hashlib.sha256()
    for keys in principal.slices():
        going = exclude_held(Task.objects.filter(pk__in=keys)).order_by("pk")
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
    """Cancel the task like its owner would, which stops its agent. Return whether it has ended; False if it is gone."""
    with contextlib.suppress(TaskNotCancelable):  # the task ended by itself
        try:
            cancel.cancel_by_key(task)
        except TaskNotFound:
            return False
    return True


@transaction.atomic
def _forget(principal: Principal, done: Erasure) -> Erasure:
    """Remove the rest after the tasks: contexts, requests about shared tasks of the tenant, counts, the key."""
    used = Task.objects.filter(context=OuterRef("pk"))
    _, gone = principal.contexts().exclude(Exists(used)).delete()
    contexts = gone.get(Context._meta.label, 0)  # noqa: SLF001 - Django's documented interface
    if principal.tenant is None:
        _take_grants(principal)
        Tally.objects.filter(owner=principal.name).delete()
        Budget.objects.filter(caller=principal.name).update(caller=done.name)
        uses = BudgetUse.objects.filter(budget__share=BudgetShare.CALLER, subject=principal.name)
        uses.update(subject=done.name)
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
    """Remove the principal's traces at shared tasks of its tenant, and at files that still wait for deletion."""
    principal.repeats().delete()
    principal.find_lost_files().update(owner="", filename="")
    for run in principal.runs().iterator():
        request = msgspec.json.decode(run.request)
        if request.get("principal") == principal.name:
            run.request = write({**request, "principal": name, "scopes": []}).decode()
            run.save(update_fields=["request"])


def _rename_usage(principal: Principal, name: str) -> int:
    """Replace the name in some reports of usage, and take their ids of tasks and contexts. The figures stay."""
    rows = Usage.objects.filter(pk__in=list(principal.usage().values_list("pk", flat=True)[:SLICE]))
    replaced = {
        column: Case(When(**{column: principal.name}, then=Value(name)), default=F(column))
        for column in ("owner", "caller")
    }
    return rows.update(**replaced, task_id="", context_id="")


def _rename(principal: Principal, name: str) -> Iterator[int]:
    """Replace the name in the audit log by a random one. The salts go, too, so the old name cannot be recovered."""
    audit_seals.seal_all()
    while rows := list(principal.entries().filter(link__isnull=False)[:SLICE]):
        yield _rename_entries(principal, rows, name)


@transaction.atomic
def _rename_entries(principal: Principal, rows: list[AuditEntry], name: str) -> int:
    """Replace the name in these entries, and record that in the same transaction: verification needs the record."""
    links = {row.entry_id: row for row in AuditLink.objects.filter(entry__in=[r.pk for r in rows])}
    count = 0
    for row in rows:
        link = links[row.pk]
        if row.actor in principal.names:
            link.actor_salt, row.actor = redact(link.actor_salt, row.actor), name
            count += 1
        if row.object in {*principal.names, principal.prefix} - {""}:
            link.object_salt, row.object = redact(link.object_salt, row.object), name
            count += 1
    with audit_triggers.unlock():
        AuditLink.objects.bulk_update(links.values(), ["actor_salt", "object_salt"])
        AuditEntry.objects.bulk_update(rows, ["actor", "object"])
    audit.note(Action.PRIVACY_ERASE, name, detail={"entries": count})
    audit_seals.seal_all()
    return len(rows)


def _conclude(done: Erasure) -> None:
    """Record the erasure in the audit log."""
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
