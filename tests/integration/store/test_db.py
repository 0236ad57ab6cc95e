"""Hops: connections that stay, and are replaced when the server has hung up."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any

import psycopg
import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError, ProgrammingError, connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.test import override_settings
from pytest_django.plugin import DjangoDbBlocker

from a2a_tasks.models import Context
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.protocol.errors import Blame, Overloaded
from a2a_tasks.store import db as store_db
from a2a_tasks.store.backend import sessions, statements
from a2a_tasks.store.db import (
    TransactionRefused,
    retry_until_answered,
    run_in_thread,
    run_large_read,
    run_list_query,
    run_to_completion,
)
from tests.integration.execution.outage import locked
from tests.support.sessions import count_sessions

LIMITS = ("statement_timeout", "idle_in_transaction_session_timeout")


def ask() -> int:
    """Which server process answers."""
    with connection.cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
        (pid,) = cursor.fetchone()
    return int(pid)


def end(pids: list[int]) -> None:
    """Have the server hang up on these, and wait until it has (a minute at most)."""
    with connection.cursor() as cursor:
        cursor.execute("select pg_terminate_backend(pid, 60000) from unnest(%s) as pid", [pids])


@pytest.mark.django_db(transaction=True)
class TestLists:
    async def test_that_are_slow_keep_nobody_waiting_but_other_lists(self) -> None:
        read = threading.Event()
        lists = [asyncio.ensure_future(run_list_query(read.wait, 20)) for _ in range(20)]
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(5):
                assert await run_in_thread(Context.objects.count) == 0
            assert not any(slow.done() for slow in lists)
        finally:
            read.set()
        assert all(await asyncio.gather(*lists))

    @pytest.mark.backend("sqlite")
    async def test_of_much_wait_for_one_read_of_each_caller(self) -> None:
        """There is one thread. Those that gave up are left out."""
        ended: list[str] = []

        def read(of: str) -> None:
            ended.append(of)

        begun, may_end = threading.Event(), threading.Event()

        def hold() -> None:
            begun.set()
            may_end.wait(20)

        first = asyncio.ensure_future(run_large_read("alice", hold))
        await asyncio.to_thread(begun.wait, 20)
        rest = [asyncio.ensure_future(run_large_read("alice", read, "alice")) for _ in range(5)]
        await asyncio.sleep(0)
        for given_up in rest[:2]:
            given_up.cancel()
        bobs = asyncio.ensure_future(run_large_read("bob", read, "bob"))
        await asyncio.sleep(0)
        may_end.set()
        await asyncio.gather(first, bobs, *rest[2:])
        assert ended == ["bob", "alice", "alice", "alice"]

    async def test_see_what_was_written_before_them(self) -> None:
        for number in range(20):
            await run_in_thread(one_context, f"{number}")
            assert await run_list_query(Context.objects.count) == number + 1


@pytest.mark.django_db(transaction=True)
class TestHop:
    @pytest.mark.backend("sqlite")
    async def test_a_database_error_is_told_as_overload(self) -> None:
        with pytest.raises(Overloaded):
            await run_in_thread(execute, "select * from no_such_table")

    @pytest.mark.backend("stack")
    async def test_a_wrong_statement_is_told_as_such(self) -> None:
        with pytest.raises(ProgrammingError, match="no_such_table"):
            await run_in_thread(execute, "select * from no_such_table")

    @pytest.mark.backend("stack")
    async def test_a_connection_the_server_ended_costs_no_request(self) -> None:
        """After a restart or a failover every thread's connection is dead; nobody is to pay for that."""
        pids = await asyncio.gather(*(run_in_thread(ask) for _ in range(32)))
        await asyncio.to_thread(end_and_close, sorted(set(pids)))
        again = await asyncio.gather(*(run_in_thread(ask) for _ in range(64)))
        assert not set(again) & set(pids)

    @pytest.mark.parametrize(
        "left",
        [
            *("begun", "Django's"),
            pytest.param("without autocommit", marks=pytest.mark.backend("stack")),
        ],
    )
    async def test_a_transaction_that_was_left_open_is_nobody_elses(
        self, left: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Nobody leaves one on purpose, but all that came after would be lost with it."""
        await asyncio.gather(*(run_in_thread(leave_open, left) for _ in range(64)))
        await asyncio.gather(*(run_in_thread(one_context, f"{n}") for n in range(64)))
        assert await sync_to_async(Context.objects.count)() == 64
        assert "a connection was left in a transaction" in caplog.text

    async def test_a_transaction_under_way_at_the_end_of_a_test_comes_to_its_own(
        self, django_db_blocker: DjangoDbBlocker
    ) -> None:
        """Were its thread kept from the database then, its connection would stay in it, and be in every other test's way."""
        begun, ended = threading.Event(), threading.Event()

        def work() -> None:
            with transaction.atomic():
                one_context("before")
                begun.set()
                ended.wait(20)
                one_context("after")

        job = asyncio.ensure_future(run_in_thread(work))
        await asyncio.to_thread(begun.wait, 20)
        django_db_blocker.restore()  # as at the end of a test
        try:
            ended.set()
            await job
        finally:
            django_db_blocker.unblock()
        assert await run_in_thread(Context.objects.count) == 2

    @pytest.mark.backend("stack")
    async def test_a_fault_of_the_site_at_a_new_connection_is_told_at_once(self) -> None:
        def fail(**_: Any) -> None:
            raise LookupError("a receiver of the site")

        await asyncio.to_thread(store_db.close)
        connection_created.connect(fail)
        try:
            with pytest.raises(LookupError, match="a receiver of the site"):
                await run_in_thread(ask)
        finally:
            connection_created.disconnect(fail)
        assert await run_in_thread(ask)

    async def test_nothing_is_begun_between_tests(self, django_db_blocker: DjangoDbBlocker) -> None:
        """By whatever a test has left: its rows would be the next one's."""
        await run_in_thread(one_context, "before")
        django_db_blocker.restore()  # as at the end of a test
        try:
            with pytest.raises(RuntimeError, match="Database access not allowed"):
                await run_in_thread(one_context, "after")
        finally:
            django_db_blocker.unblock()
        assert await run_in_thread(Context.objects.count) == 1

    async def test_what_was_done_in_time_is_told_though_the_loop_looks_late(
        self, monkeypatch: pytest.MonkeyPatch, settings: Any
    ) -> None:
        settings.A2A_DATABASE_SECONDS = 1.0
        monkeypatch.setattr(sessions, "SILENCE_SECONDS", 0.1)
        done = threading.Event()

        def work() -> str:
            done.set()
            return "done"

        asked = asyncio.ensure_future(run_in_thread(work))
        await asyncio.sleep(0)
        assert done.wait(10)
        end = time.monotonic() + sessions.longest() + 0.2
        while time.monotonic() < end:
            pass  # nobody gets the loop
        assert await asked == "done"

    async def test_what_ends_at_the_moment_it_is_given_up_is_told_to_who_must_know(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Told that its outcome is unknown, it would be done again."""

        async def too_late(job: Future[Any]) -> None:
            await asyncio.wrap_future(job)
            raise Overloaded.away(undone=False)

        monkeypatch.setattr(store_db, "_in_time", too_late)
        assert await run_to_completion(lambda: "done") == "done"


@pytest.mark.django_db(transaction=True)
@pytest.mark.backend("stack")
class TestAnOutage:
    def test_a_session_without_a_socket_is_closed_all_the_same(self) -> None:
        """Whatever state it is in when it is given up, it does not stay open."""

        class Session:
            finished = False

            @property
            def socket(self) -> int:
                raise self.fault

            def finish(self) -> None:
                self.finished = True

            fault: Exception = psycopg.OperationalError("the connection is lost")

        known, unknown = Session(), Session()
        unknown.fault = RuntimeError("no state that is known")
        sessions._Door().give_up(known)
        with pytest.raises(RuntimeError):
            sessions._Door().give_up(unknown)
        assert known.finished and unknown.finished

    async def test_a_statement_that_takes_too_long_is_ended_by_the_server(self) -> None:
        with override_settings(A2A_DATABASE_SECONDS=0.2), pytest.raises(Overloaded) as caught:
            await run_in_thread(execute, "select pg_sleep(60)")
        assert caught.value.undone
        assert caught.value.blame is Blame.ITSELF
        asleep = "query = 'select pg_sleep(60)' and state = 'active'"
        assert await run_in_thread(count_sessions, asleep) == 0

    async def test_a_wait_for_a_lock_is_the_fault_of_others(self) -> None:
        # The limits of a wait and of a statement are 10 % apart, which must be enough on a busy machine.
        async with locked("a2a_tasks_context", 4.0):
            with pytest.raises(Overloaded) as caught:
                await run_in_thread(Context.objects.count)
        assert caught.value.undone
        assert caught.value.blame is Blame.OTHERS

    @pytest.mark.parametrize(
        ("state", "blame", "undone"),
        [
            ("XX000", Blame.ITSELF, False),
            ("54000", Blame.ITSELF, False),
            ("58030", Blame.ITSELF, False),
            ("57014", Blame.ITSELF, True),
            ("40P01", Blame.OTHERS, True),
            ("08P01", Blame.NOBODY, False),
            ("57P01", Blame.NOBODY, False),
            ("57P03", Blame.NOBODY, True),
            ("53100", Blame.NOBODY, True),
            ("25006", Blame.NOBODY, True),
        ],
    )
    async def test_what_the_database_says_tells_whose_fault_it_may_be(
        self, state: str, blame: Blame, *, undone: bool
    ) -> None:
        with pytest.raises(Overloaded) as caught:
            await run_in_thread(
                execute, f"do $$ begin raise 'no' using errcode = '{state}'; end $$"
            )
        assert (caught.value.blame, caught.value.undone) == (blame, undone)

    async def test_a_large_statement_has_more_time_to_arrive_and_no_statement_after_it(
        self,
    ) -> None:
        def limits() -> list[tuple[Any, ...]]:
            shown = [f"current_setting('{name}')::interval" for name in LIMITS]
            found = []
            with transaction.atomic():
                with sessions.allow_bytes(100 * sessions.SPEED):
                    found += statements.fetch(f"select {', '.join(shown)}", [])
                found += statements.fetch(f"select {', '.join(shown)}", [])
            return found

        large, usual = await run_in_thread(limits)
        assert [(more - less).total_seconds() for more, less in zip(large, usual, strict=True)] == [
            100,
            100,
        ]

    async def test_a_large_statement_whose_connection_ends_may_be_the_cause(self) -> None:
        def cut(size: int) -> None:
            with sessions.allow_bytes(size):
                with socket.socket(fileno=os.dup(connection.connection.fileno())) as copy:
                    copy.shutdown(socket.SHUT_RDWR)
                Context.objects.count()

        with pytest.raises(Overloaded) as caught:
            await run_in_thread(cut, 2_000_000)
        assert (caught.value.blame, caught.value.undone) == (Blame.ITSELF, False)

    async def test_a_server_that_does_not_answer_loses_its_connection(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sessions, "SILENCE_SECONDS", 0.1)
        asked = []

        def hang() -> None:
            asked.append(ask())
            execute("set statement_timeout = 0; select pg_sleep(2)")

        # a busy machine begins it within a second
        with override_settings(A2A_DATABASE_SECONDS=1.0), pytest.raises(Overloaded) as caught:
            await run_in_thread(hang)
        assert not caught.value.undone
        again = await asyncio.gather(*(run_in_thread(ask) for _ in range(64)))
        assert not set(again) & set(asked)

    async def test_work_that_gets_no_thread_in_time_is_not_done(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sessions, "SILENCE_SECONDS", 0.05)
        done: list[int] = []
        go_on = threading.Event()
        busy = [
            asyncio.create_task(run_in_thread(go_on.wait, 30)) for _ in range(store_db._threads())
        ]
        await asyncio.sleep(0)
        with override_settings(A2A_DATABASE_SECONDS=0.1), pytest.raises(Overloaded) as caught:
            await run_in_thread(done.append, 1)
        go_on.set()
        await asyncio.gather(*busy, return_exceptions=True)
        await run_in_thread(ask)
        assert caught.value.undone
        assert not done

    async def test_who_must_know_what_became_of_it_waits_for_work_that_has_begun(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sessions, "SILENCE_SECONDS", 0.05)
        begun, go_on = threading.Event(), threading.Event()

        def work() -> str:
            begun.set()
            return "done" if go_on.wait(30) else "late"

        with override_settings(A2A_DATABASE_SECONDS=1.0):
            with pytest.raises(Overloaded):
                await run_in_thread(go_on.wait, 30)
            waiting = asyncio.create_task(run_to_completion(work))
            assert await asyncio.to_thread(begun.wait, 10)
            with pytest.raises(Overloaded):
                await run_in_thread(go_on.wait, 30)  # as long again
        assert not waiting.done()
        go_on.set()
        assert await waiting == "done"

    async def test_a_database_that_only_reads_is_told_as_overload(self) -> None:
        with pytest.raises(Overloaded) as caught:
            await run_in_thread(write_in_a_transaction_that_only_reads)
        assert caught.value.undone

    async def test_of_two_transactions_in_a_deadlock_the_loser_is_tried_again(self) -> None:
        await run_in_thread(two_contexts)
        both_have_one = threading.Barrier(2, timeout=10)
        orders = (["a", "b"], ["b", "a"])
        await asyncio.gather(*(run_in_thread(Locking(order, both_have_one)) for order in orders))

    async def test_a_server_that_cannot_be_reached_is_not_asked_by_everybody(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sessions, "CLOSED_SECONDS", 3600.0)
        monkeypatch.setattr(sessions, "_door", sessions._Door())
        attempts: list[None] = []

        def refuse(_: BaseDatabaseWrapper) -> None:
            attempts.append(None)
            raise OperationalError("connection refused")

        await asyncio.gather(*(run_in_thread(store_db.close_connections) for _ in range(64)))
        with monkeypatch.context() as patched:
            patched.setattr(BaseDatabaseWrapper, "connect", refuse)
            asked = [run_in_thread(ask) for _ in range(200)]
            answers = await asyncio.gather(*asked, return_exceptions=True)
        assert all(isinstance(answer, Overloaded) and answer.undone for answer in answers)
        assert 1 <= len(attempts) <= store_db._threads()
        sessions._door._closed_until = time.monotonic()
        assert await run_in_thread(ask)

    async def test_the_log_says_it_once_however_many_ask(
        self, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(
            store_db, "_outage", ThrottledLogger(store_db.logger, "the database is away")
        )
        with caplog.at_level(logging.WARNING):
            asked = [run_in_thread(write_in_a_transaction_that_only_reads) for _ in range(20)]
            await asyncio.gather(*asked, return_exceptions=True)
        told = [record for record in caplog.records if "the database is away" in record.message]
        assert len(told) == 1
        assert "\n" not in told[0].message


class Refusing:
    """What fails with these, one after the other, and then succeeds; `beside` is done before each failure."""

    def __init__(self, *faults: Overloaded, beside: Callable[[], Awaitable[object]]) -> None:
        self.faults, self.beside, self.asked = list(faults), beside, 0

    async def __call__(self) -> str:
        self.asked += 1
        if not self.faults:
            return "done"
        await self.beside()
        raise self.faults.pop(0)


async def nothing() -> None:
    """The database does nothing else."""


async def other_work() -> None:
    """The database does something else for this process."""
    await run_in_thread(lambda: None)


OUTAGE = Overloaded.away(undone=True)
WAITED = Overloaded.away(undone=True, blame=Blame.OTHERS)
OWN = Overloaded.away(undone=True, blame=Blame.ITSELF)
UNKNOWN = Overloaded.away(undone=False, blame=Blame.ITSELF)


@pytest.mark.django_db(transaction=True)
class TestWhoWaitsForAnAnswer:
    @pytest.fixture(autouse=True)
    def _at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(store_db, "AGAIN_SECONDS", 0.0)
        monkeypatch.setattr(store_db, "REFUSED_SECONDS", 0.0)

    @pytest.mark.parametrize("fault", [OWN, UNKNOWN], ids=["too slow", "unknown"])
    async def test_is_refused_after_some_failures_that_may_be_its_own(
        self, fault: Overloaded
    ) -> None:
        ask = Refusing(*[fault] * 100, beside=other_work)
        with pytest.raises(TransactionRefused):
            await retry_until_answered(ask, repeatable=True)
        assert ask.asked == store_db.REFUSALS

    async def test_is_not_refused_before_its_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(store_db, "REFUSED_SECONDS", 300.0)
        assert await retry_until_answered(Refusing(*[OWN] * 100, beside=other_work)) == "done"

    async def test_is_not_refused_while_the_database_does_nothing_else_either(self) -> None:
        assert await retry_until_answered(Refusing(*[OWN] * 100, beside=nothing)) == "done"

    async def test_is_not_refused_for_what_others_have_locked(self) -> None:
        assert await retry_until_answered(Refusing(*[WAITED] * 100, beside=other_work)) == "done"

    async def test_waits_for_the_end_of_an_outage(self) -> None:
        faults = [*[OWN] * 4, OUTAGE] * 20
        assert await retry_until_answered(Refusing(*faults, beside=other_work)) == "done"

    async def test_slows_down_if_each_try_is_dear(self, monkeypatch: pytest.MonkeyPatch) -> None:
        slept = list[float]()

        async def sleep(seconds: float) -> None:
            slept.append(seconds)

        ask = Refusing(*[OUTAGE] * 8, beside=nothing)
        with monkeypatch.context() as patch:
            patch.setattr(store_db, "AGAIN_SECONDS", 0.25)
            patch.setattr(asyncio, "sleep", sleep)
            assert await retry_until_answered(ask, slows_down=True) == "done"
        assert slept == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]

    async def test_that_may_not_repeat_itself_is_told_of_an_unknown_outcome(self) -> None:
        ask = Refusing(UNKNOWN, beside=nothing)
        with pytest.raises(Overloaded):
            await retry_until_answered(ask)
        assert ask.asked == 1


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def leave_open(how: str) -> None:
    """Have a transaction begun, or about to be with whatever comes next."""
    if how == "begun":
        execute("begin")
    elif how == "without autocommit":
        connection.connection.autocommit = False
    else:
        connection.set_autocommit(False)


def one_context(name: str) -> None:
    with transaction.atomic():
        Context.objects.create(public_id=name, agent="demo")


def write_in_a_transaction_that_only_reads() -> None:
    with transaction.atomic():
        execute("set transaction read only")
        Context.objects.create(public_id="refused", agent="demo")


def two_contexts() -> None:
    for name in ("a", "b"):
        Context.objects.create(public_id=name, agent="demo")


class Locking:
    """Locks two rows in an order, having waited until somebody else holds the second."""

    def __init__(self, order: list[str], meeting: threading.Barrier) -> None:
        self.order, self.meeting, self.met = order, meeting, False

    def __call__(self) -> None:
        with transaction.atomic():
            lock(self.order[0])
            if not self.met:
                self.met = True
                self.meeting.wait()
            lock(self.order[1])


def lock(name: str) -> Any:
    return Context.objects.select_for_update().get(public_id=name)


def end_and_close(pids: list[int]) -> None:
    """`end`, over a connection of this thread's own."""
    try:
        end(pids)
    finally:
        connection.close()
