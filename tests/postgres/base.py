"""The backend: Django's own but for `sql_flush`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.backends.postgresql import base
from django.db.backends.postgresql.creation import DatabaseCreation
from django.db.backends.postgresql.operations import DatabaseOperations


class Operations(DatabaseOperations):
    """Empties tables row by row; constraints are deferred, so the order does not matter."""

    def sql_flush(self, style: Any, tables: Sequence[str], **options: Any) -> list[str]:
        """DELETE for each table. Sequences go on, as they do in production."""
        return [f"DELETE FROM {self.quote_name(table)};" for table in tables]  # noqa: S608 - Django's own table names


class Creation(DatabaseCreation):
    """Drops the database whoever is still connected: a thread may write to the log behind the last test."""

    def _destroy_test_db(self, test_database_name: str, verbosity: int) -> None:
        with self._nodb_cursor() as cursor:  # type: ignore[attr-defined]
            name = self.connection.ops.quote_name(test_database_name)
            cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")


class DatabaseWrapper(base.DatabaseWrapper):
    """What `ENGINE: tests.postgres` names."""

    creation_class = Creation
    ops_class = Operations
