"""Columns with sealed secrets (`a2a_tasks/sealing.py`): a check that the keys open them, and sealing with the newest key.

Every such column has to be registered; otherwise its secrets are lost when their key is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from django.db import models, transaction

from a2a_tasks import sealing
from a2a_tasks.audit import Action
from a2a_tasks.store import audit

__all__ = ["Column", "columns", "register", "reseal", "unreadable"]

#: Rows read and resealed in one transaction.
SLICE = 500


class Column(NamedTuple):
    """A column with sealed texts, or with JSON objects whose texts are sealed; empty values hold no secret."""

    #: The name of the values, for operators.
    name: str
    model: type[models.Model]
    column: str


_columns: dict[str, Column] = {}


def register(column: Column) -> None:
    """Register a column."""
    _columns[column.name] = column


def columns() -> list[Column]:
    """Return all registered columns."""
    return list(_columns.values())


def unreadable(column: Column) -> int:
    """Return the number of rows that no key opens. Raises django.db.Error."""
    return sum(not _opens(value) for rows in _slices(column) for _, value in rows)


def reseal(column: Column) -> tuple[int, int]:
    """Seal every secret with the newest key. Returns the number of resealed rows, and of rows that no key opens."""
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
        # A value that was replaced meanwhile is sealed with the newest key already.
        same = _rows(column).filter(pk=key, **{column.column: value})
        done += same.update(**{column.column: fresh})
    audit.note(Action.SECRETS_RESEAL, detail={"resealed": done, "unreadable": lost})
    return done, lost


def _slices(column: Column) -> Iterator[list[tuple[Any, Any]]]:
    """Yield all rows with a value, in the order of their keys."""
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
