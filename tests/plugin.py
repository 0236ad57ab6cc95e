"""What every test may ask for, and how the same suite runs on two backends (see `tests/backend.py`)."""

from __future__ import annotations

import gc
import os
import threading
from asyncio.selector_events import BaseSelectorEventLoop
from collections import Counter
from collections.abc import Generator, Iterator
from concurrent.futures import Future, wait
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from pytest_django.plugin import DjangoDbBlocker

from tests import backend as backends
from tests.support import chromium, prometheus
from tests.support.leftovers import Leftovers
from tests.support.processes import Child, celery_worker
from tests.support.selection import find_backend, find_turns_of_others, is_for_another
from tests.support.thorough import THOROUGH, examples

#: The session's worker, once a test asked for one.
WORKER = pytest.StashKey[Child]()
#: Folders whose tests begin processes, and wait for them: the longest first.
WHOLE_HOSTS = ["journeys", "lab"]
#: The tests of these share a host: they stay in one process of `pytest -n`, or there would be a host in each.
TOGETHER = ("tests/journeys/", "lab/browser/", "lab/workers/")
#: What tests count, and how it is called in the report.
COUNTED = {
    "cells": "cells of the cross-access matrix",
    "hostile": "hostile requests",
}


#: Tables that Django fills after each migration. They are the same for every test, and filling them anew takes longer
#: than most tests.
KEPT = {"django_content_type", "auth_permission"}

# No test is about how long it takes; a busy machine is slow now and then.
hypothesis.settings.register_profile(
    "unhurried", deadline=None, max_examples=examples(100, quick=15)
)
hypothesis.settings.load_profile("unhurried")


def pytest_configure(config: pytest.Config) -> None:
    """Look for what the run leaves behind: once, in the process that controls the others."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Leftovers())


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Tests and imported modules stay to the end of the run: the garbage collector need not look at them again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import the modules of the other backend, some of which import whole frameworks; one that is asked for is."""
    if not collection_path.name.startswith("test_"):
        return None
    if collection_path in _resolve(tuple(config.args)):
        return None
    return is_for_another(collection_path.read_text(encoding="utf-8"), backends.backend()) or None


@cache
def _resolve(named: tuple[str, ...]) -> set[Path]:
    """The paths among the arguments: the same for hundreds of files."""
    return {Path(each.split("::")[0]).resolve() for each in named}


def pytest_report_header() -> str:
    """Show what the tests run on."""
    browser = chromium.path() or "none found, so the tests marked `chromium` are left out"
    pictures = chromium.PICTURES if chromium.path() else "none"
    metrics = prometheus.path() or "none found, so the tests marked `prometheus` are left out"
    programs = f"Chromium: {browser}, pictures of pages: {pictures}, Prometheus: {metrics}"
    return f"{backends.describe()}, {programs}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of the other backend, and those that need what is not there. Whole hosts come first.

    A file of tests of whole hosts may take a minute, for which one process would be left alone at the end.
    """
    others = [item for item in items if find_backend(item) not in {None, backends.backend()}]
    if chromium.path() is None:
        others += [item for item in items if item.get_closest_marker("chromium")]
    if not THOROUGH:
        others += [item for item in items if item.get_closest_marker("thorough")]
    if prometheus.path() is None:
        others += [item for item in items if item.get_closest_marker("prometheus")]
    left_out = set(others)
    if not THOROUGH:
        left_out |= set(find_turns_of_others([item for item in items if item not in left_out]))
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]
    items.sort(key=_turn)
    for item in items:
        if "unit" in item.path.parts and _uses_database(item):
            raise pytest.UsageError(
                f"{item.nodeid} uses a database: it belongs to tests/integration"
            )


def _turn(item: pytest.Item) -> int:
    found = (n for n, folder in enumerate(WHOLE_HOSTS) if folder in item.path.parts)
    return next(found, len(WHOLE_HOSTS))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two processes more than there are cores: many tests wait, for a server or for the processes of a host.

    In `make test`, whose halves run at the same time (`tests/halves.py`), the half on PostgreSQL has one more process
    than there are cores, because its tests wait most, and the other half has as many processes as there are cores.
    """
    more = 2 if not os.environ.get("TEST_HALVES") else int(backends.backend() == backends.STACK)
    return max(os.cpu_count() or 1, 2) + more


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each process of `pytest -n` a file of tests at a time, or a folder whose tests share a host."""
    from xdist.scheduler import LoadFileScheduling  # noqa: PLC0415 - only in runs of several processes

    class Files(LoadFileScheduling):  # type: ignore[misc]  # it has no types
        def _split_scope(self, nodeid: str) -> str:
            folder = next((each for each in TOGETHER if nodeid.startswith(each)), None)
            return folder or str(super()._split_scope(nodeid))

    return Files(config, log)


def _uses_database(item: pytest.Item) -> bool:
    fixtures = set(getattr(item, "fixturenames", ()))
    return item.get_closest_marker("django_db") is not None or bool(
        fixtures & {"db", "transactional_db"}
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Count a skipped test as failed (nobody reads the list of skips), and show the worker's log with a failure."""
    report = yield
    report.sections = [(name, _sendable(text)) for name, text in report.sections]
    if report.skipped and not hasattr(report, "wasxfail"):
        _fail_skipped(report)
    if report.failed and WORKER in item.config.stash:
        report.sections.append(("log of the celery worker", item.config.stash[WORKER].log))
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Count a skipped module as failed, too."""
    report = yield
    if report.skipped:
        _fail_skipped(report)
    return report


def _fail_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    report.outcome = "failed"
    report.longrepr = f"Skipped, which counts as failed here: {report.longrepr}"


def _sendable(text: str) -> str:
    """The text as processes of one run can tell it each other: what was logged may hold half surrogates."""
    return text.encode(errors="backslashreplace").decode()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Tell what tests counted, as they did by `record_property("cells", n)`, in whichever process they ran."""
    counted: Counter[str] = Counter()
    for report in terminalreporter.stats.get("passed", []):
        counted.update({name: value for name, value in report.user_properties if name in COUNTED})
    for name, count in counted.items():
        terminalreporter.write_line(f"{COUNTED[name]}: {count}")


def pytest_unconfigure() -> None:
    """Stop the servers that were started for this run."""
    backends.stop()


@pytest.fixture(scope="session")
def backend() -> str:
    """Name the backend of this run: `sqlite` or `stack`."""
    return backends.backend()


@pytest.fixture(scope="session")
def django_db_modify_db_settings_parallel_suffix() -> None:
    """Leave the database its name: each process of `pytest -n` has one of its own already (see `tests/backend.py`)."""


@pytest.fixture(scope="session", autouse=True)
def kept_from_the_database(django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Between tests, and in those that do not ask for the database, threads may end the transactions they are in.

    One may be in a transaction when a test ends. Kept from ending it, it would hold the lock on a SQLite file, or what
    is written on its connection to PostgreSQL, for the rest of the run. It begins nothing: rows would be left to others.
    """
    from django.db.backends.base.base import BaseDatabaseWrapper  # noqa: PLC0415 - only once Django is set up

    own, refuse = threading.get_ident(), BaseDatabaseWrapper.ensure_connection
    with django_db_blocker.unblock():
        connect = BaseDatabaseWrapper.ensure_connection

    def ensure_connection(wrapper: BaseDatabaseWrapper) -> None:
        ending = wrapper.in_atomic_block or not wrapper.autocommit
        others = threading.get_ident() != own and wrapper.connection is not None
        (connect if others and ending else refuse)(wrapper)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseDatabaseWrapper, "ensure_connection", ensure_connection)
        yield


@pytest.fixture(scope="session", autouse=True)
def loops_end_without_connections() -> Iterator[None]:
    """An event loop that ends while a connection is open fails its own test.

    Otherwise the collector finds the connection, perhaps hours later, and another test fails.
    """
    close = BaseSelectorEventLoop.close

    def close_if_unused(loop: Any) -> None:
        left = [] if loop.is_closed() else list(loop._transports.values())
        close(loop)
        left = [str(transport) for transport in left if not transport.is_closing()]
        assert not left, f"{loop} ends while these are open: {left}"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseSelectorEventLoop, "close", close_if_unused)
        yield


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Make the test database; before it is dropped, let the store's threads give back their connections."""
    from django.core.management.commands import flush  # noqa: PLC0415 - only once Django is set up
    from django.db import OperationalError, connection, transaction  # noqa: PLC0415 - the same
    from django.test import TransactionTestCase  # noqa: PLC0415 - the same

    from a2a_tasks.store import db as store_db  # noqa: PLC0415 - the same
    from a2a_tasks.store.audit_triggers import unlock  # noqa: PLC0415 - the same

    deletes = [f"DELETE FROM {table}" for table in _tables()]  # noqa: S608 - Django's own names
    is_stack = backends.backend() == backends.STACK

    @cache
    def make_function() -> None:
        """Make the function that empties the tables: PostgreSQL plans it once for each connection.

        It is made when it is first needed: in a run of tests with processes only, there is no database before.
        """
        body = "; ".join(deletes)
        with connection.cursor() as cursor:
            cursor.execute(
                f"CREATE OR REPLACE FUNCTION tests_empty() RETURNS void LANGUAGE plpgsql AS $$ BEGIN {body}; END $$"
            )

    def empty(*_: Any, **__: Any) -> None:
        """After a test that commits. Constraints are deferred, so the order of tables does not matter.

        Also of the audit log, which is append-only for everybody else. A worker of the module may still fold the events
        of a task. If the two transactions block each other, PostgreSQL ends one, and the tables are emptied anew.
        """
        if is_stack:
            make_function()
        for is_last in (False, False, True):
            try:
                with transaction.atomic(), unlock(), connection.cursor() as cursor:
                    for delete in ["SELECT tests_empty()"] if is_stack else deletes:
                        cursor.execute(delete)
                return
            except OperationalError:
                if is_last:
                    raise

    def reload_connections(_: object) -> bool:
        """Keep the connection of a test that commits for the next one: a new one costs PostgreSQL 15 ms.

        It is closed if it is broken, or if the store has set its limits on it.
        """
        limited = "seconds" in getattr(connection.connection, "__dict__", {})
        if limited or (connection.errors_occurred and not connection.is_usable()):
            connection.close()
        return False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flush.Command, "handle", empty)
        patch.setattr(TransactionTestCase, "_should_reload_connections", reload_connections)
        yield
    store_db.close()


@pytest.fixture(scope="session")
def database(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The test database, also in a run of tests with processes only: pytest-django makes it for marked tests alone.

    The mark itself is not for those: it holds a transaction, or empties tables under running processes.
    """
    from django.test.utils import setup_databases, teardown_databases  # noqa: PLC0415 - the same

    from a2a_tasks.store import db as store_db  # noqa: PLC0415 - the same

    with django_db_blocker.unblock():
        made = None if _has_tables() else setup_databases(verbosity=0, interactive=False)
    yield
    if made is not None:
        store_db.close()  # a journey may have used the store itself
        with django_db_blocker.unblock():
            teardown_databases(made, verbosity=0)


def _has_tables() -> bool:
    from django.db import OperationalError, connection, connections  # noqa: PLC0415 - the same

    try:
        return bool(connection.introspection.table_names())
    except OperationalError:
        return False
    finally:
        connections.close_all()


@pytest.fixture
def empty_audit_log(db: None) -> None:
    """Begin with an empty log, and with nothing on its way to it."""
    from django.db import transaction  # noqa: PLC0415 - only once Django is set up

    from a2a_tasks.models import AuditEntry, AuditLink, AuditSeal  # noqa: PLC0415 - the same
    from a2a_tasks.store import db as store_db  # noqa: PLC0415 - the same
    from a2a_tasks.store.audit_triggers import unlock  # noqa: PLC0415 - the same

    store_db.close()
    with transaction.atomic(), unlock():
        for model in (AuditEntry, AuditLink, AuditSeal):
            model._default_manager.all().delete()


@pytest.fixture(scope="module")
def worker(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, request: pytest.FixtureRequest
) -> Iterator[Child]:
    """Run one real Celery worker on the test database, for the tests of a module that asks (stack only).

    No longer than that: it claims every run of the queue `agents`, also those of tests that mean to do so themselves.
    What it writes as it ends, such as the row that says so, goes with it.
    """
    from django.core.management import call_command  # noqa: PLC0415 - only once Django is set up

    if backends.backend() != backends.STACK:
        pytest.fail(
            "workers belong to the stack: mark the test @pytest.mark.backend('stack'), or ask for `runners`"
        )
    with celery_worker() as child:
        request.config.stash[WORKER] = child
        yield child
    with django_db_blocker.unblock():
        call_command("flush", interactive=False, verbosity=0)


@pytest.fixture
def runners(backend: str, request: pytest.FixtureRequest) -> None:
    """See to it that accepted runs are carried out: by a worker on the stack, by this process on SQLite."""
    if backend == backends.STACK:
        request.getfixturevalue("worker")


@pytest.fixture
def life(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The `process_lifetime.Lifetime` of this process: a test may begin its drain, and the process itself goes on."""
    from a2a_tasks import process_lifetime  # noqa: PLC0415 - only once Django is set up

    made = process_lifetime.Lifetime()
    for name in ("on_drain", "is_draining", "drain_seconds"):
        monkeypatch.setattr(process_lifetime, name, getattr(made, name))
    return made


@pytest.fixture(autouse=True)
def _refusals_end_with_their_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let no test leave notes of what it was refused: a timer would write them ten seconds later, in this test or another.

    A test without a database writes none.
    """
    from a2a_tasks.access import auth_failures  # noqa: PLC0415 - only once Django is set up

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(auth_failures, "_throttle", auth_failures.Throttle(auth_failures._put))
        patch.setattr(auth_failures, "_timer", threading.main_thread())  # alive: no other begins
        if not _uses_database(request.node):
            patch.setattr(auth_failures, "run_in_background", lambda *_: Future[None]())
        yield


@pytest.fixture(autouse=True)
def _switches_end_with_their_test() -> Iterator[None]:
    """Forget the switches, budgets and versions that the process has read in a test: their rows are gone."""
    from a2a_tasks.access import switch_cache  # noqa: PLC0415 - only once Django is set up
    from a2a_tasks.agents import switches, versions  # noqa: PLC0415 - as above
    from a2a_tasks.store import budgets  # noqa: PLC0415 - as above

    yield
    if switches._known or budgets._known or versions._known:
        switch_cache.forget()


@pytest.fixture(autouse=True)
def _store_in_the_tests_transaction(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let the store work in the transaction of a test that is rolled back (`tests/support/inline_store.py`).

    Of one that commits, what is under way is written before its tables are emptied: what was to be folded, and notes of
    refusals.
    """
    if not _uses_database(request.node):
        yield
        return
    if not _is_rolled_back(request):
        yield from _written_before_the_end(request)
        return
    from tests.support.inline_store import inline_store  # noqa: PLC0415 - only once Django is set up

    request.getfixturevalue("db")
    with inline_store():
        yield


def _written_before_the_end(request: pytest.FixtureRequest) -> Iterator[None]:
    from a2a_tasks.access import auth_failures  # noqa: PLC0415 - only once Django is set up
    from a2a_tasks.store import db, folding  # noqa: PLC0415 - the same

    request.getfixturevalue("transactional_db")
    begun: list[Future[None]] = []

    def begin(*work: Any) -> Future[None]:
        begun.append(db.run_in_background(*work))
        return begun[-1]

    with pytest.MonkeyPatch.context() as patch:
        for module in (folding, auth_failures):
            patch.setattr(module, "run_in_background", begin)
        yield
        while not all(job.done() for job in begun):  # one job begins the next
            wait(begun, timeout=10)


def _is_rolled_back(test: pytest.FixtureRequest | pytest.Function) -> bool:
    if "transactional_db" in test.fixturenames:
        return False
    marker = (test if isinstance(test, pytest.Function) else test.node).get_closest_marker(
        "django_db"
    )
    if marker is not None:
        return not marker.kwargs.get("transaction", False)
    return "db" in test.fixturenames


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, None, None]:
    """A test that is rolled back leaves no row behind: one that does has written past its own transaction.

    `make test` looks at tasks alone, `make test-all` at all tables but those of the audit log (see `empty_audit_log`).
    """
    yield
    if nextitem is None:
        return  # the database is gone with the last test
    if not isinstance(item, pytest.Function) or not _is_rolled_back(item):
        return
    from django.db import connection  # noqa: PLC0415 - only once Django is set up
    from pytest_django.plugin import blocking_manager_key  # noqa: PLC0415 - the same

    tables = ["a2a_tasks_task"]
    if THOROUGH:
        tables = [table for table in _tables() if "_audit" not in table]
    looks = (
        f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {table})"  # noqa: S608 - Django's own names
        for table in tables
    )
    with item.config.stash[blocking_manager_key].unblock(), connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(looks))
        left = [table for (table,) in cursor.fetchall()]
    assert not left, f"rows are left behind in {left}: mark the test transaction=True"


def _tables() -> list[str]:
    """The tables that begin empty."""
    from django.apps import apps  # noqa: PLC0415 - only once Django is set up

    models = apps.get_models(include_auto_created=True)
    return sorted({model._meta.db_table for model in models if model._meta.managed} - KEPT)
