"""Migrations of the host: what they import, and what waits for them on a database that is in use."""

from __future__ import annotations

import ast
import contextlib
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection, connections, models
from django.db.migrations import AddField, AddIndex, Migration, RemoveIndex, RunPython
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from a2a_tasks.management.database import count_missing_migrations
from a2a_tasks.migrations import _patience
from a2a_tasks.migrations._patience import (
    AddIndexPatiently,
    PatientMigration,
    RemoveIndexPatiently,
)
from a2a_tasks.models import Run
from tests import ROOT
from tests.support.sessions import WAITS_FOR_A_LOCK, count_sessions
from tests.support.store.world import accepted

FILES = sorted(ROOT.glob("a2a_*/migrations/*.py"))
#: The modules that a migration may import: the others change with the code.
FROZEN = {
    *("django", "json", "uuid", "decimal", "time", "collections", "typing", "__future__"),
    "a2a_tasks.migrations._patience",
}


class Adds(PatientMigration):
    """A column, as a release adds one."""

    operations = [AddField("run", "of_a_test", models.TextField(db_default="", default=""))]


class Builds(Migration):
    """An index of the table of runs."""

    atomic = False
    operations = [AddIndexPatiently("run", models.Index(fields=["worker"], name="run_of_a_test"))]


class Drops(Migration):
    """The same index, which a later release drops."""

    atomic = False
    operations = [RemoveIndexPatiently("run", "run_of_a_test")]


def imported(file: Path) -> set[str]:
    """The modules that a file imports, by their first word unless they are ours."""
    found = set[str]()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(f"{'.' * node.level}{node.module or ''}")
    return {name if name.startswith(("a2a", ".")) else name.split(".")[0] for name in found}


@pytest.mark.checkout
@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parts[-3]}-{file.stem}")
def test_a_migration_imports_no_code_of_today(file: Path) -> None:
    assert imported(file) <= FROZEN


def test_each_of_ours_is_patient_or_no_transaction_at_all() -> None:
    loader = MigrationLoader(None)
    ours = [one for one in loader.disk_migrations.values() if one.app_label.startswith("a2a_")]
    assert len(ours) >= 6
    assert [str(one) for one in ours if one.atomic and not isinstance(one, PatientMigration)] == []
    indexed = [
        (str(migration), operation.model_name)
        for migration in ours
        if not migration.replaces  # those are applied to a new database alone
        for operation in migration.operations
        if type(operation) is AddIndex and operation.model_name not in new_in(migration)
    ]
    assert indexed == []
    dropped = [
        str(migration)
        for migration in ours
        for operation in migration.operations
        if type(operation) is RemoveIndex
    ]
    assert dropped == [], "going back would build them in a transaction"
    assert not [one for one in ours if isinstance(one, PatientMigration) and not one.atomic]


def new_in(migration: Any) -> set[str]:
    """The tables that a migration makes: they are empty."""
    return {each.name_lower for each in migration.operations if hasattr(each, "fields")}


def state() -> Any:
    """The models as the migrations leave them."""
    return MigrationExecutor(connection).loader.project_state()


def run(migration: Any, *, back: bool = False) -> None:
    """Apply a migration, or undo it, as `migrate` does."""
    before = state()
    if isinstance(migration, Drops):
        Builds.operations[0].state_forwards("a2a_tasks", before)
    with connection.schema_editor(atomic=migration.atomic) as editor:
        (migration.unapply if back else migration.apply)(before, editor)


@contextlib.contextmanager
def dump() -> Iterator[psycopg.Connection]:
    """A transaction like that of pg_dump: it reads the table of runs, and goes on."""
    with psycopg.connect(**connection.get_connection_params()) as session:
        session.execute("lock table a2a_tasks_run in access share mode")
        yield session
        session.rollback()


def in_background(work: Any, *args: Any) -> threading.Thread:
    """Start the work in a thread with a connection of its own."""

    def begin() -> None:
        try:
            work(*args)
        finally:
            connections.close_all()

    thread = threading.Thread(target=begin)
    thread.start()
    return thread


def columns() -> set[str]:
    with connection.cursor() as cursor:
        described = connection.introspection.get_table_description(cursor, "a2a_tasks_run")
        return {column.name for column in described}


def waits_for_a_lock() -> bool:
    """Whether a session of this database waits for the table of runs."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select 1 from pg_locks where not granted and relation = 'a2a_tasks_run'::regclass"
            " and database = (select oid from pg_database where datname = current_database())"
        )
        return cursor.fetchone() is not None


def builds_and_waits() -> bool:
    """Whether the session that builds or drops an index waits for the transactions of others."""
    return count_sessions(f"query ~* '^(create|drop) index' and {WAITS_FOR_A_LOCK}") > 0


def until(condition: Any) -> None:
    """Wait until it holds."""
    for _ in range(600):
        if condition():
            return
        threading.Event().wait(0.02)
    raise AssertionError("it never held")


@pytest.mark.django_db
def test_a_database_of_the_migrations_that_were_squashed_has_nothing_to_apply() -> None:
    recorded = MigrationRecorder(connection).migration_qs
    loader = MigrationLoader(None)
    replacing = [one for one in loader.disk_migrations.values() if one.replaces]
    for one in replacing:
        recorded.filter(app=one.app_label, name=one.name).delete()
        for app, name in one.replaces:
            recorded.create(app=app, name=name)
    assert len(replacing) == 3
    assert count_missing_migrations() == 0


@pytest.mark.django_db
def test_a_process_of_before_the_new_names_reads_and_writes_the_same_columns() -> None:
    loader, last = MigrationLoader(connection), "0004_runs_that_wait_for_tasks"
    before = loader.project_state(("a2a_tasks", last)).apps.get_model("a2a_tasks", "Run").objects
    accepted("task-1", quota_key="a")
    assert before.get().share == "a"
    before.update(share="b", company=2, furthest=3)
    assert Run.objects.filter(quota_key="b", runs_in_process=2, max_events=3).exists()


@pytest.mark.backend("stack")
@pytest.mark.django_db(transaction=True)
class TestBesideALongTransaction:
    def test_a_migration_lets_sends_pass_and_comes_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(_patience, "PAUSE_SECONDS", 0.2)
        monkeypatch.setattr(_patience, "LOCK_SECONDS", 0.5)
        with dump():
            migrating = in_background(run, Adds("x", "a2a_tasks"))
            until(waits_for_a_lock)
            accepted("sent meanwhile")  # behind the migration, which gives up
            assert Run.objects.count() == 1
            assert "of_a_test" not in columns()
            assert migrating.is_alive()
        migrating.join(20)
        assert "of_a_test" in columns()
        run(Adds("x", "a2a_tasks"), back=True)
        assert "of_a_test" not in columns()

    def test_one_that_never_gets_its_locks_says_why_and_leaves_nothing(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(_patience, "PAUSE_SECONDS", 0)
        monkeypatch.setattr(_patience, "LOCK_SECONDS", 0.1)
        monkeypatch.setattr(_patience, "TRIES", 3)
        with dump(), pytest.raises(OperationalError, match="did not get its locks"):
            run(Adds("x", "a2a_tasks"))
        assert "of_a_test" not in columns()

    def test_an_index_is_built_while_runs_are_written(self) -> None:
        with dump() as session:
            session.execute("lock table a2a_tasks_run in row exclusive mode")  # it writes, too
            building = in_background(run, Builds("y", "a2a_tasks"))
            until(builds_and_waits)
            accepted("sent meanwhile")
            assert Run.objects.count() == 1
            assert building.is_alive()
        building.join(20)
        assert is_valid("run_of_a_test")
        run(Builds("y", "a2a_tasks"))  # again: it is there
        assert is_valid("run_of_a_test")
        run(Builds("y", "a2a_tasks"), back=True)
        assert is_valid("run_of_a_test") is None

    @pytest.mark.parametrize("kind", [Builds, Drops])
    def test_an_index_is_dropped_while_runs_are_written(self, kind: type[Migration]) -> None:
        run(Builds("y", "a2a_tasks"))
        with dump() as session:
            session.execute("lock table a2a_tasks_run in row exclusive mode")  # it writes, too
            dropping = in_background(partial(run, back=kind is Builds), kind("y", "a2a_tasks"))
            until(builds_and_waits)
            accepted("sent meanwhile")
            assert Run.objects.count() == 1
            assert dropping.is_alive()
        dropping.join(20)
        assert is_valid("run_of_a_test") is None

    def test_an_index_that_a_release_drops_is_built_again_while_runs_are_written(self) -> None:
        with dump() as session:
            session.execute("lock table a2a_tasks_run in row exclusive mode")  # it writes, too
            building = in_background(partial(run, back=True), Drops("z", "a2a_tasks"))
            until(builds_and_waits)
            accepted("sent meanwhile")
            assert Run.objects.count() == 1
        building.join(20)
        assert is_valid("run_of_a_test")
        run(Drops("z", "a2a_tasks"))
        assert is_valid("run_of_a_test") is None

    def test_an_index_whose_building_was_interrupted_is_built_anew(self) -> None:
        run(Builds("y", "a2a_tasks"))
        with connection.cursor() as cursor:
            cursor.execute(
                "update pg_index set indisvalid = false where indexrelid = 'run_of_a_test'::regclass"
            )
        assert is_valid("run_of_a_test") is False
        run(Builds("y", "a2a_tasks"))
        assert is_valid("run_of_a_test")
        run(Builds("y", "a2a_tasks"), back=True)


def is_valid(index: str) -> bool | None:
    """Whether the index can be used; None = it does not exist."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select indisvalid from pg_index where indexrelid = to_regclass(%s)", [index]
        )
        found = cursor.fetchone()
    return found and bool(found[0])


@pytest.mark.django_db(transaction=True)
def test_a_fault_that_is_no_lock_is_raised_at_once() -> None:
    def fail(apps: object, schema: object) -> None:
        raise ZeroDivisionError

    class Fails(PatientMigration):
        operations = [RunPython(fail)]

    with pytest.raises(ZeroDivisionError):
        run(Fails("z", "a2a_tasks"))
