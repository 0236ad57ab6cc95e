"""Copies of the rows of every table, made by PostgreSQL itself: each world of rows that belong together, many times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from django.apps import apps
from django.db import connection, models

__all__ = ["copy_children", "copy_worlds"]

APPS = ("a2a_tasks", "a2a_push", "auth", "admin")
#: Tables with a row for each agent, or that nobody fills but the installation.
ALONE = {"Permission", "Group", "AgentSwitch", "AgentVersion"}
#: The last report of a process: its copies have died, one after the other.
AGED = "seen_at"
#: What autovacuum does with the pages that were added: until then, an index of ranges of pages finds all of them.
SUMMARIZE = """
select brin_summarize_new_values(c.oid) from pg_class c join pg_am am on am.oid = c.relam
where am.amname = 'brin' and c.relkind = 'i' and c.relnamespace = 'public'::regnamespace
"""
Keys = dict[str, tuple[int, dict[object, int]]]


def copy_worlds(count: int) -> None:
    """Copy all rows so often, with their relations to each other: as if as many callers had done the same."""
    keys: Keys = {}
    with _unchecked():
        for model in _in_order():
            _copy_table(model, count, keys)


def copy_children(tables: Mapping[type[models.Model], str], count: int) -> None:
    """Copy the first row of each table so often, below the same parent; its column is counted on."""
    with _unchecked():
        for model, varied in tables.items():
            columns = [
                (str(field.column), _count_on(field, field.name == varied, "below"))
                for field in model._meta.concrete_fields
            ]
            _insert(
                model,
                _read(model)[0]["ctid"],
                count,
                [(name, value) for name, value in columns if value],
            )


@contextmanager
def _unchecked() -> Iterator[None]:
    """Write without triggers, checks of keys and the store's time for a statement."""
    with connection.cursor() as cursor:
        cursor.execute("show statement_timeout")
        timeout = cursor.fetchone()[0]
        cursor.execute("set statement_timeout = 0; set session_replication_role = replica")
        yield
        cursor.execute(SUMMARIZE)
        cursor.execute("set session_replication_role = origin; analyze")
        cursor.execute(f"set statement_timeout = '{timeout}'")


def _read(model: type[models.Model]) -> list[dict[str, Any]]:
    """Return all rows as they are, each with its place in the table."""
    with connection.cursor() as cursor:
        cursor.execute(f"select ctid::text, * from {model._meta.db_table} order by ctid")  # noqa: S608 - our names
        names = [column.name for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _copy_table(model: type[models.Model], count: int, keys: Keys) -> None:
    rows, key = _read(model), model._meta.pk.column
    own = [row[key] for row in rows] if key else []
    last = max((key for key in own if isinstance(key, int)), default=0)
    keys[model._meta.db_table] = last, {key: rank for rank, key in enumerate(own)}
    for row in rows:
        _copy(model, row, count, keys)
    if isinstance(model._meta.pk, models.AutoField) and rows:
        sequence = f"pg_get_serial_sequence('{model._meta.db_table}', '{key}')"
        with connection.cursor() as cursor:
            cursor.execute(f"select setval({sequence}, {last + len(rows) * count})")


def _in_order() -> list[type[models.Model]]:
    """Return the tables, each after those that it points at."""
    left = [
        model
        for label in APPS
        for model in apps.get_app_config(label).get_models()
        if model.__name__ not in ALONE and not model._meta.proxy
    ]
    found: list[type[models.Model]] = []
    while left:
        for model in left:
            if not _parents(model) & set(left) - {model}:
                found.append(model)
                left.remove(model)
                break
        else:
            raise AssertionError(f"a circle: {left}")
    return found


def _parents(model: type[models.Model]) -> set[type[models.Model]]:
    return {field.related_model for field in model._meta.concrete_fields if field.related_model}


def _copy(model: type[models.Model], row: dict[str, Any], count: int, keys: Keys) -> None:
    varied = set(_varied(model, keys))
    columns = []
    for field in model._meta.concrete_fields:
        name = str(field.column)
        parent = model if isinstance(field, models.AutoField) else field.related_model
        followed = _follow(row[name], parent, count, keys) if parent else None
        value = followed or _count_on(field, field.name in varied)
        columns.append((name, value or f't."{name}"'))
    _insert(model, row["ctid"], count, columns)


def _follow(key: object, parent: type[models.Model], count: int, keys: Keys) -> str | None:
    """Return the key of the copy of a row; None = its table has no copies."""
    if parent._meta.db_table not in keys:
        return None
    last, ranks = keys[parent._meta.db_table]
    assert key is None or key in ranks, (key, parent, ranks)
    return "null" if key is None else f"{last + ranks[key] * count} + n"


def _varied(model: type[models.Model], keys: Keys) -> Iterator[str]:
    """Yield the columns that have to differ between copies, since nothing else of their unique key does."""
    meta = model._meta
    uniques: list[tuple[str, ...]] = [
        (field.name,)
        for field in meta.concrete_fields
        if field.unique and not isinstance(field, models.AutoField)
    ]
    uniques += [
        tuple(each.fields) for each in meta.constraints if isinstance(each, models.UniqueConstraint)
    ]
    uniques += [tuple(f.name for f in meta.pk_fields)] if meta.pk.column is None else []
    for unique in uniques:
        fields = [meta.get_field(name) for name in unique]
        if not any(
            field.related_model and field.related_model._meta.db_table in keys for field in fields
        ):
            plain = [field for field in fields if not field.related_model]
            yield plain[-1].name


def _count_on(field: models.Field[Any, Any], varies: bool, salt: str = "") -> str | None:
    """Return the value of a column in the copies; None = no value, the database has a default."""
    column = f't."{field.column}"'
    if field.name == AGED:
        return f"{column} - interval '1 minute' - n * interval '1 second'"
    if not varies:
        return None if isinstance(field, models.AutoField) else column
    if isinstance(field, models.CharField | models.TextField):
        return f"left(md5({column} || ' ' || n || '{salt}'), {field.max_length or 32})"
    if isinstance(field, models.UUIDField):
        return f"md5({column} || ' ' || n)::uuid"
    assert isinstance(field, models.IntegerField), f"{field} cannot be counted on"
    return f"{column} + 1000 + n"


def _insert(
    model: type[models.Model], place: str, count: int, columns: Sequence[tuple[str, str]]
) -> None:
    table, names = model._meta.db_table, ", ".join(f'"{name}"' for name, _ in columns)
    values = ", ".join(value for _, value in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            f"insert into {table} ({names}) select {values}"  # noqa: S608 - our own names
            f" from {table} t, generate_series(1, {count}) n where t.ctid = %s::tid",
            [place],
        )
