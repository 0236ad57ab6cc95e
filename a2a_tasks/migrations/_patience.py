"""Migrations beside a working host: none blocks its requests for longer than a second.

A change of a table waits for all transactions that use the table, such as a dump, and every later one waits behind it. So
a migration gives up its locks after LOCK_SECONDS, and tries again a little later. Indexes of tables that may be large are
built while the table is written (`AddIndexPatiently`).

Migrations import this module and Django alone: what they do must not change with the code of today.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from django.db import OperationalError, migrations, transaction

#: Most seconds for which a migration waits for a lock, while others wait behind it.
LOCK_SECONDS = 1
#: Seconds from one try to the next, and the number of tries: together about ten minutes.
PAUSE_SECONDS = 3
TRIES = 150
#: SQLSTATE of a statement that waited too long for a lock.
LOCKED = "55P03"


class PatientMigration(migrations.Migration):
    """A migration that is undone when it waits too long for a lock, and tried again. It is one transaction."""

    def apply(self, project_state: Any, schema_editor: Any, collect_sql: bool = False) -> Any:
        """Apply it. Raises OperationalError if its locks were never free."""
        return self._try(super().apply, project_state, schema_editor, collect_sql)

    def unapply(self, project_state: Any, schema_editor: Any, collect_sql: bool = False) -> Any:
        """Undo it, in the same way."""
        return self._try(super().unapply, project_state, schema_editor, collect_sql)

    def _try(self, work: Callable[..., Any], state: Any, schema: Any, collect_sql: bool) -> Any:
        if collect_sql or not self.atomic or schema.connection.vendor != "postgresql":
            return work(state, schema, collect_sql)
        for _ in range(TRIES):
            try:
                return self._do(work, state.clone(), schema)
            except OperationalError as fault:
                if getattr(fault.__cause__, "sqlstate", None) != LOCKED:
                    raise
            time.sleep(PAUSE_SECONDS)
        raise OperationalError(
            f"{self} did not get its locks in {TRIES * (LOCK_SECONDS + PAUSE_SECONDS)} s. "
            "Long transactions hold them, perhaps of a dump: repeat `migrate` after their end."
        )

    @staticmethod
    def _do(work: Callable[..., Any], state: Any, schema: Any) -> Any:
        """Work inside a savepoint: if it is rolled back, its locks are given up."""
        earlier = list(schema.deferred_sql)
        try:
            with transaction.atomic(schema.connection.alias):
                schema.execute(f"set local lock_timeout = '{LOCK_SECONDS}s'")
                done = work(state, schema)
                while schema.deferred_sql:
                    schema.execute(schema.deferred_sql.pop(0), None)
                return done
        except OperationalError:
            schema.deferred_sql[:] = earlier
            raise


class AddIndexPatiently(migrations.AddIndex):
    """An index that PostgreSQL builds, or drops, while the table is written. Its migration has `atomic = False`.

    It can be repeated: an index that is there stays, and one whose building was interrupted is built anew.
    """

    atomic = False

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Build the index, unless it is there."""
        _build(schema_editor, to_state.apps.get_model(app_label, self.model_name), self.index)

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Drop the index, if it is there."""
        _drop(schema_editor, from_state.apps.get_model(app_label, self.model_name), self.index)


class RemoveIndexPatiently(migrations.RemoveIndex):
    """An index that PostgreSQL drops, or builds again, while the table is written, as above."""

    atomic = False

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Drop the index, if it is there."""
        index = from_state.models[app_label, self.model_name_lower].get_index_by_name(self.name)
        _drop(schema_editor, from_state.apps.get_model(app_label, self.model_name), index)

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Build the index, unless it is there."""
        index = to_state.models[app_label, self.model_name_lower].get_index_by_name(self.name)
        _build(schema_editor, to_state.apps.get_model(app_label, self.model_name), index)


def _build(schema: Any, model: Any, index: Any) -> None:
    if schema.connection.vendor != "postgresql":
        if index.name not in _list_indexes(schema.connection, model):
            schema.add_index(model, index)
    elif not _is_valid(schema, index.name):
        schema.add_index(model, index, concurrently=True)


def _drop(schema: Any, model: Any, index: Any) -> None:
    if schema.connection.vendor == "postgresql":
        schema.remove_index(model, index, concurrently=True)
    elif index.name in _list_indexes(schema.connection, model):
        schema.remove_index(model, index)


def _is_valid(schema: Any, index: str) -> bool:
    """Return whether the index is there. One whose building was interrupted is dropped."""
    with schema.connection.cursor() as cursor:
        cursor.execute("select indisvalid from pg_index where indexrelid = to_regclass(%s)", [index])
        found = cursor.fetchone()
    if found == (False,):
        schema.execute(f'drop index concurrently "{index}"')
    return bool(found == (True,))


def _list_indexes(connection: Any, model: Any) -> Any:
    with connection.cursor() as cursor:
        return connection.introspection.get_constraints(cursor, model._meta.db_table)
