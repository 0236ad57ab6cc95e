"""Legal holds: operators lay and release them, with a reason; held tasks are not purged or erased."""

from __future__ import annotations

from typing import TypeVar

from django.db import IntegrityError, transaction
from django.db.models import Exists, Model, OuterRef, QuerySet

from a2a_tasks.audit import Action, actor
from a2a_tasks.models import Delegation, Hold, HoldKind, Task
from a2a_tasks.store import audit, clock
from a2a_tasks.store.tenancy import within

__all__ = ["AlreadyHeld", "HoldKind", "in_force", "lay", "release", "exclude_held"]

M = TypeVar("M", bound=Model)
#: The columns of a task that each kind of hold compares with its name. Tenants are not here: they include the tenants
#: below them.
COLUMNS = (
    (HoldKind.PRINCIPAL, "owner"),
    (HoldKind.PRINCIPAL, "created_by"),  # in the scope shared by its tenant
    (HoldKind.CONTEXT, "context__public_id"),
    (HoldKind.TASK, "public_id"),
)


class AlreadyHeld(ValueError):
    """An equal hold is in force already."""


def in_force() -> QuerySet[Hold]:
    """Return the holds that have not been released, oldest first."""
    return Hold.objects.filter(released_at=None).order_by("pk")


def lay(kind: HoldKind, name: str, reason: str) -> Hold:
    """Lay a hold, by the current actor. Raises AlreadyHeld, and ValueError without a reason or name."""
    if not reason.strip():
        raise ValueError("A hold needs a reason")
    if not name and kind is not HoldKind.TENANT:
        raise ValueError(f"The name of the {kind.value} is missing")
    try:
        with transaction.atomic():
            row = Hold.objects.create(kind=kind, name=name, reason=reason.strip(), by=actor())
            audit.note(Action.HOLD_SET, name, detail={"on": kind.value, "hold": row.pk})
    except IntegrityError:
        raise AlreadyHeld(f"The {kind.value} is held already") from None
    return row


@transaction.atomic
def release(hold: int) -> bool:
    """Release a hold, by the current actor. False if it was released already, or does not exist."""
    row = in_force().select_for_update().filter(pk=hold).first()
    if row is None:
        return False
    row.released_at, row.released_by = clock.now(), actor()
    row.save(update_fields=["released_at", "released_by"])
    audit.note(Action.HOLD_RELEASE, row.name, detail={"on": row.kind, "hold": row.pk})
    return True


def exclude_held(rows: QuerySet[M], task: str = "") -> QuerySet[M]:
    """Return those of these rows that are not held; `task` is the prefix of the path to their task: `task__`."""
    tenants = list(in_force().filter(kind=HoldKind.TENANT).values_list("name", flat=True))
    if tenants:
        rows = rows.exclude(within(tenants, f"{task}tenant"))
    for kind, column in COLUMNS:
        named = in_force().filter(kind=kind, name=OuterRef(f"{task}{column}"))
        rows = rows.exclude(Exists(named))
    if called := _find_called():
        rows = rows.exclude(**{f"{task}pk__in": called})
    return rows


def _find_called() -> set[int]:
    """Return the tasks that tasks under a hold have called, and those below them."""
    found, callers = set[int](), set[int]()
    for kind, column in ((HoldKind.CONTEXT, "context__public_id"), (HoldKind.TASK, "public_id")):
        named = in_force().filter(kind=kind).values_list("name", flat=True)
        tasks = Task.objects.filter(**{f"{column}__in": list(named)})
        callers |= set(tasks.values_list("pk", flat=True))
    while callers:
        called = Delegation.objects.filter(parent__in=callers).values_list("child", flat=True)
        callers = set(called) - found
        found |= callers
    return found
