"""Columns with sealed secrets (`a2a_tasks/sealing.py`): asked whether they still open, and sealed with the newest key.

Whoever has such a column registers it, or its secrets are lost with the key that is taken away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from django.db import models, transaction

from a2a_tasks import sealing
from a2a_tasks.audit import Action
from a2a_tasks.store import audit

__all__ = ["Column", "columns", "register", "reseal", "unreadable"]

#: Rows read, and resealed, in one go.
SLICE = 500


class Column(NamedTuple):
    """Sealed texts, or JSON objects whose texts are sealed; empty ones hold nothing."""

    #: The name of the values, for operators.
    name: str
    model: type[models.Model]
    column: str


_columns: dict[str, Column] = {}


def register(column: Column) -> None:
    """Look at this one, too."""
    _columns[column.name] = column


def columns() -> list[Column]:
    """All there are."""
    return list(_columns.values())


def unreadable(column: Column) -> int:
    """Count the rows that no key opens. Raises django.db.Error."""
    return sum(not _opens(value) for rows in _slices(column) for _, value in rows)


def reseal(column: Column) -> tuple[int, int]:
    """Seal every secret with the newest key. Returns how many rows were, and how many no key opens."""
    done = lost = 0
    for rows in _slices(column):
        count, not_opened = _reseal(column, rows)
        done, lost = done + count, lost + not_opened
    return done, lost


@transaction.atomic
def _reseal(column: Column, rows: list[tuple[Any, Any]]) -> tuple[int, int]:
    done = lost = 0
    for key, value in rows:
        try:
            fresh = _change(value, sealing.reseal)
        except sealing.Unsealable:
            lost += 1
            continue
        # One that was replaced meanwhile is sealed with the newest key already.
        same = _rows(column).filter(pk=key, **{column.column: value})
        done += same.update(**{column.column: fresh})
    audit.note(Action.SECRETS_RESEAL, detail={"resealed": done, "unreadable": lost})
    return done, lost


def _slices(column: Column) -> Iterator[list[tuple[Any, Any]]]:
    """All rows with something in them, in the order of their keys."""
    full = _rows(column).exclude(**{column.column: ""}).order_by("pk")
    rows = list(full.values_list("pk", column.column)[:SLICE])
    while rows:
        yield rows
        rows = list(full.filter(pk__gt=rows[-1][0]).values_list("pk", column.column)[:SLICE])


def _rows(column: Column) -> models.QuerySet[Any]:
    return column.model._default_manager.all()  # noqa: SLF001 - Django's documented name


def _opens(value: Any) -> bool:
    try:
        _change(value, sealing.unseal)
    except sealing.Unsealable:
        return False
    return True


def _change(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {name: change(v) if isinstance(v, str) else v for name, v in value.items()}
    return change(value)
