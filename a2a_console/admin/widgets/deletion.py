"""Pages that ask before rows are deleted."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.db.models import CASCADE, Model, QuerySet
from django.http import HttpRequest

__all__ = ["CountedDeletion"]

#: Maximum number of rows that such a page names.
NAMED = 20


class CountedDeletion:
    """An admin whose pages count what is deleted, and name a few of the rows: there may be 100,000 behind one.

    Rows that go with another one need no right of their own.
    """

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> tuple[Any, Any, Any, Any]:
        """Return some names, the counts by kind, the kinds that need rights, and the protected rows; the last two are none."""
        rows = objs if isinstance(objs, QuerySet) else _query(objs)
        counts = _count(rows)
        names = [str(row) for row in rows[:NAMED]]
        if (more := counts[rows.model] - len(names)) > 0:
            names.append(f"and {more:,} more")
        said = {str(get_options(model).verbose_name_plural): counts[model] for model in counts}
        return names, said, set(), []


def get_options(model: type[Model]) -> Any:
    """Return what Django knows about a model."""
    return model._meta  # noqa: SLF001 - it is documented


def _query(objs: list[Model]) -> QuerySet[Any]:
    model: Any = type(objs[0])
    rows: QuerySet[Any] = model.objects.filter(pk__in=[row.pk for row in objs])
    return rows


def _count(rows: QuerySet[Any]) -> Counter[type[Model]]:
    """Count rows, and all rows that go with them, by model."""
    counts = Counter({rows.model: rows.count()})
    for relation in get_options(rows.model).get_fields(include_hidden=True):
        if getattr(relation, "on_delete", None) is CASCADE and relation.auto_created:
            below: Any = relation.related_model
            keys = rows.order_by().values("pk")
            counts += _count(below.objects.filter(**{f"{relation.field.name}__in": keys}))
    return counts
