"""The erasure of a principal's data, in small transactions; an entry of the audit log records it.

Data under a legal hold stays, and while any stays, so does the name in the audit log. The erasure may be interrupted at
any time, and repeated.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import secrets
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

import msgspec
from django.db import transaction
from django.db.models import Case, Exists, F, OuterRef, QuerySet, Value, When
from django.db.models.functions import Replace

from a2a_console.privacy.principal import Principal, walk
from a2a_console.sparse_index import use_nothing_else
from a2a_tasks.audit import Action
from a2a_tasks.audit.chain import redact
from a2a_tasks.models import (
    AuditEntry,
    AuditLink,
    Budget,
    BudgetShare,
    BudgetUse,
    BulkJob,
    Context,
    Hold,
    HoldKind,
    Idempotency,
    Run,
    SavedView,
    Tally,
    Task,
    Usage,
)
from a2a_tasks.protocol.errors import TaskNotCancelable, TaskNotFound
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.store import audit, audit_seals, audit_triggers, cancel, files
from a2a_tasks.store.conversations import sweep_lists
from a2a_tasks.store.legal_holds import exclude_held, in_force
from a2a_tasks.store.purge import Removed, remove_each

__all__ = ["COUNTED", "Erasure", "ErasurePlan", "erase", "survey"]

#: The number of audit entries or reports in which names are replaced in one transaction.
SLICE = 500
#: Counts stop here: then there are at least so many.
COUNTED = 10_000


@dataclass(frozen=True, kw_only=True)
class ErasurePlan:
    """The counts of a principal's data before an erasure, each at most COUNTED."""

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
    """Count the data that `erase` would find now. The table of tasks is searched once."""
    with use_nothing_else():
        keys = list(principal.tasks().values_list("pk", flat=True)[:COUNTED])
    tasks = Task.objects.filter(pk__in=keys)
    return ErasurePlan(
        tasks=len(keys),
        running=tasks.exclude(state__in=TERMINAL).count(),
        held=len(keys) - exclude_held(tasks).count(),
        contexts=_count(principal.contexts()),
        keys=_count(principal.keys()),
        entries=_count(principal.entries()),
        itself=_is_held(principal),
    )


def _count(rows: QuerySet[Any]) -> int:
    with use_nothing_else():
        return rows.order_by().values("pk")[:COUNTED].count()


def _is_held(principal: Principal) -> bool:
    return in_force().filter(kind=HoldKind.PRINCIPAL, name=principal.name).exists()


def erase(principal: Principal) -> Iterator[Erasure]:
    """Cancel and remove the tasks, remove the rest, replace the name. Yield the progress after each step."""
    done = Erasure(f"erased:{secrets.token_hex(8)}")
    done = yield from _remove(principal, done)
    done = replace(done, left=_count(principal.tasks()))
    if not done.left and not _is_held(principal):
        done = _forget(principal, done)
        done = yield from _forget_traces(principal, done)
        for _ in _rename_usage(principal, done.name):
            yield done
        for count in _rename(principal, done.name):
            done = replace(done, entries=done.entries + count)
            yield done
    # Of conversations and tasks that have just been removed.
    for sweep in (functools.partial(sweep_lists, SLICE), functools.partial(files.sweep)):
        while rows := sweep():
            done = replace(done, removed=done.removed + Removed(rows=rows))
            yield done
    _conclude(done)
    yield done


def _remove(principal: Principal, done: Erasure) -> Generator[Erasure, None, Erasure]:
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
    yield (done := replace(done, digest=digest.hexdigest()))
    return done


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
    """Remove counts and the key, and the name in decisions. Runs wait for locked budgets, so budgets come last."""
    principal.find_lost_files().update(owner="", filename="")
    keys, _ = principal.keys().delete()
    if principal.tenant is None:
        _take_grants(principal)
        Tally.objects.filter(owner=principal.name).delete()
        _forget_filters(principal.name, done.name)
        Hold.objects.filter(kind=HoldKind.PRINCIPAL, name=principal.name).update(name=done.name)
        Hold.objects.filter(by__in=principal.names).update(by=done.name)
        Hold.objects.filter(released_by__in=principal.names).update(released_by=done.name)
        Budget.objects.filter(caller=principal.name).update(caller=done.name)
        uses = BudgetUse.objects.filter(budget__share=BudgetShare.CALLER, subject=principal.name)
        uses.update(subject=done.name)
    return replace(done, keys=keys)


def _forget_filters(old: str, new: str) -> None:
    """Replace a name in the filters of bulk jobs and saved views. A query has a bounded length, so it gets a short word."""
    was, becomes = (f'"owner":{write(name).decode()}' for name in (old, new))
    replaced = Replace("choice", Value(was), Value(becomes))
    BulkJob.objects.filter(choice__contains=was).update(choice=replaced)
    given = urlencode({"owner": old})
    for model in (BulkJob, SavedView):
        for row in model.objects.filter(query__contains=given):
            members = ("owner=erased" if one == given else one for one in row.query.split("&"))
            model.objects.filter(pk=row.pk).update(query="&".join(members))


def _take_grants(principal: Principal) -> None:
    for row in principal.grants().select_for_update():
        row.delete()
        audit.note(
            Action.GRANT_REMOVE, row.grantee, detail={"agent": row.agent, "right": row.right}
        )


def _forget_traces(principal: Principal, done: Erasure) -> Generator[Erasure, None, Erasure]:
    """Remove contexts without a task, and the principal's traces at shared tasks of its tenant."""
    used = Task.objects.filter(context=OuterRef("pk"))
    for keys in walk(principal.contexts()):
        _, gone = Context.objects.filter(pk__in=keys).exclude(Exists(used)).delete()
        contexts = gone.get(Context._meta.label, 0)  # noqa: SLF001 - Django's documented interface
        done = replace(done, removed=done.removed + Removed(contexts=contexts))
        yield done
    for keys in walk(principal.repeats()):
        Idempotency.objects.filter(pk__in=keys).delete()
        yield done
    for keys in walk(principal.runs()):
        _rename_requests(keys, principal.name, done.name)
        yield done
    return done


@transaction.atomic
def _rename_requests(keys: list[int], old: str, new: str) -> None:
    for run in Run.objects.filter(pk__in=keys).only("request"):
        request = msgspec.json.decode(run.request)
        if request.get("principal") == old:
            run.request = write({**request, "principal": new, "scopes": [], "headers": {}}).decode()
            run.save(update_fields=["request"])


def _rename_usage(principal: Principal, name: str) -> Iterator[None]:
    """Replace the name in the reports of usage, and take their ids of tasks and contexts. The figures stay."""
    replaced = {
        column: Case(When(**{column: principal.name}, then=Value(name)), default=F(column))
        for column in ("owner", "caller")
    }
    for keys in walk(principal.usage()):
        rows = Usage.objects.filter(pk__in=keys)
        rows.update(**replaced, task_id="", context_id="")
        yield


def _rename(principal: Principal, name: str) -> Iterator[int]:
    """Replace the name in the audit log by a random one. The salts go, too, so the old name cannot be recovered."""
    audit_seals.seal_all()
    for keys in walk(principal.entries()):
        sealed = AuditEntry.objects.filter(pk__in=keys, link__isnull=False)
        yield _rename_entries(principal, list(sealed), name)


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
