"""The tables of webhooks at one moment, as plain values, read by SQL of the farm's own: see `lab/faultlab/dump.py`.

Moments are seconds since 1970.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
import psycopg
from psycopg.rows import class_row

from lab.faultlab.dump import EVENTS, TASKS, EventRow, TaskRow

__all__ = ["AttemptRow", "ConfigRow", "DeliveryRow", "Rows", "read_rows", "texts"]


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    """One row; its own key is `row`."""

    row: int


class ConfigRow(_Row, frozen=True, kw_only=True):
    """A webhook that is there at the end."""

    task: int
    url: str
    dialect: str
    cursor: int
    active: bool
    token: str
    disabled_reason: str


class DeliveryRow(_Row, frozen=True, kw_only=True):
    """One notification; `config` is None once its webhook is taken away."""

    config: int | None
    task: int
    address: str
    number: int
    through: int
    webhook_id: str
    body: str
    status: str
    attempts: int
    reason: str
    created_at: float
    settled_at: float | None


class AttemptRow(_Row, frozen=True, kw_only=True):
    """One request."""

    delivery: int
    number: int
    started_at: float
    seconds: float
    status: int | None
    fault: str
    worker: str


@dataclass(frozen=True, slots=True)
class Rows:
    """All rows, each table in the order of its keys."""

    tasks: tuple[TaskRow, ...] = ()
    events: tuple[EventRow, ...] = ()
    configs: tuple[ConfigRow, ...] = ()
    deliveries: tuple[DeliveryRow, ...] = ()
    attempts: tuple[AttemptRow, ...] = ()


CONFIGS = """
select id as row, task_id as task, url, dialect, cursor, active, token, disabled_reason
from a2a_push_pushconfig order by id
"""
DELIVERIES = """
select d.id as row, d.config_id as config, d.task_id as task, r.address, d.number, d.through, d.webhook_id,
  coalesce(b.body, d.body) as body,
  d.status, d.attempts, d.reason, extract(epoch from d.created_at)::float8 as created_at,
  extract(epoch from d.settled_at)::float8 as settled_at
from a2a_push_delivery d join a2a_push_receiver r on r.id = d.receiver_id
left join a2a_push_deliverybody b on d.body = ''
  and (b.task_id, b.number, b.through, b.dialect) = (d.task_id, d.number, d.through, d.dialect)
order by d.id
"""
ATTEMPTS = """
select id as row, delivery_id as delivery, number, extract(epoch from started_at)::float8 as started_at, seconds,
  status, fault, worker
from a2a_push_attempt order by delivery_id, number, id
"""
R = TypeVar("R")


def read_rows(database_url: str) -> Rows:
    """Everything, as it was at one moment. Raises psycopg.Error."""
    with psycopg.connect(database_url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        return Rows(
            tasks=_read(connection, TaskRow, TASKS),
            events=_read(connection, EventRow, EVENTS),
            configs=_read(connection, ConfigRow, CONFIGS),
            deliveries=_read(connection, DeliveryRow, DELIVERIES),
            attempts=_read(connection, AttemptRow, ATTEMPTS),
        )


def _read(connection: psycopg.Connection[Any], kind: type[R], sql: str) -> tuple[R, ...]:
    with connection.cursor(row_factory=class_row(kind)) as cursor:
        return tuple(cursor.execute(sql))


def texts(database_url: str, words: list[str]) -> list[str]:
    """Which tables, whichever they are, have one of these words anywhere in a row: `table: word`."""
    found: list[str] = []
    with psycopg.connect(database_url) as connection:
        tables = connection.execute(
            "select quote_ident(table_name) from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'"
        ).fetchall()
        for (table,) in tables:
            for (text,) in connection.execute(f"select t::text from {table} t"):
                found += [f"{table}: {word}" for word in words if word in text]
    return found
