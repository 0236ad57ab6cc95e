"""The backend: Django's own, but it drops a database that is in use."""

from __future__ import annotations

from django.db.backends.postgresql import base
from django.db.backends.postgresql.creation import DatabaseCreation


class Creation(DatabaseCreation):
    """Drops the database whoever is still connected: a thread may write to the log behind the last test."""

    def _destroy_test_db(self, test_database_name: str, verbosity: int) -> None:
        with self._nodb_cursor() as cursor:  # type: ignore[attr-defined]
            name = self.connection.ops.quote_name(test_database_name)
            cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")


class DatabaseWrapper(base.DatabaseWrapper):
    """What `ENGINE: tests.postgres` names."""

    creation_class = Creation
