"""Messages of commands and workers about an unusable database: one line, with the remedy."""

from __future__ import annotations

from django.core.management.base import CommandError
from django.db import DatabaseError, OperationalError, connections
from django.db.migrations.executor import MigrationExecutor

__all__ = ["count_missing_migrations", "explain", "refuse_unusable_database"]

CONNECT = "Look at DATABASE_URL: the server has to run, the database to exist, and its user to own the tables."
MIGRATE = "Apply the migrations: python manage.py migrate"
#: Texts of PostgreSQL, PgBouncer and SQLite about missing tables and columns.
NO_TABLES = ("no such table", "no such column", "does not exist\nLINE")
#: Texts of PostgreSQL, PgBouncer and SQLite for refused connections, which retries do not cure.
REFUSALS = (
    "does not exist",
    "authentication failed",
    "no password supplied",
    "pg_hba.conf",
    "not permitted to log in",
    "permission denied",
    "unable to open database file",
    "no such database",
    "no such user",
)


def count_missing_migrations() -> int:
    """Return the number of missing migrations.

    This is quicker than a run of `migrate` that has nothing to apply. Raises DatabaseError.
    """
    executor = MigrationExecutor(connections["default"])
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def explain(error: DatabaseError) -> str:
    """Return the reason why the database cannot be used, in its own words on one line, and the remedy."""
    text = str(error)
    why = " ".join(text.partition("\nLINE")[0].split()).rstrip(".?")
    advice = MIGRATE if any(words in text for words in NO_TABLES) else CONNECT
    return f"The database cannot be used: {why}. {advice}"


def refuse_unusable_database() -> None:
    """Raise CommandError if migrations are missing, or the database refuses its user, but not if it is away."""
    try:
        missing = count_missing_migrations()
    except OperationalError as error:
        if not any(words in str(error) for words in REFUSALS):
            return  # /readyz reports it
        raise CommandError(explain(error)) from error
    except DatabaseError as error:
        raise CommandError(explain(error)) from error
    finally:
        connections.close_all()
    if missing:
        raise CommandError(f"The database lacks {missing} migrations of this version. {MIGRATE}")
