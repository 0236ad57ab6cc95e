"""Group commit: many at once, and none of them pays for another."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
from django.db import IntegrityError, InternalError, connection, transaction
from pytest_django import Settings

from a2a_tasks.models import Budget, Context, Task
from a2a_tasks.protocol.errors import Blame, Overloaded
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import db as store_db
from a2a_tasks.store.accept import accept_batched, accept_many
from a2a_tasks.store.append import append_batched, append_many
from a2a_tasks.store.backend import sessions
from a2a_tasks.store.backend.interface import backend
from a2a_tasks.store.batched_call import LANES, MAX_BYTES, BatchedCall
from a2a_tasks.store.db import TransactionRefused, retry_until_answered, run_in_thread
from a2a_tasks.store.records import Accepted, ArtifactRow, Batch, LeaseLost
from tests.support.store.poison import POISON, poisonous
from tests.support.store.world import BOB, Pen, chunk, held, new, status


@pytest.mark.django_db
class TestManyAtOnce:
    def test_each_run_gets_its_number_or_is_fenced(self) -> None:
        pens = [Pen(held(f"task-{n}")) for n in range(3)]
        pens[1].end()
        event, row = status(TaskState.WORKING)
        results = append_many([pen.batch(event, status=row) for pen in pens])
        assert (results[0], results[2]) == (2, 2)
        assert isinstance(results[1], LeaseLost)
        assert list(Task.objects.order_by("pk").values_list("last_event", flat=True)) == [2, 2, 2]

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.parametrize(
        "spoil",
        [
            pytest.param(
                lambda pen: pen.batch(chunk("a", "x"), artifacts=[ArtifactRow(0, "a\x00b", 0)]),
                id="a name with NUL",
            ),
            pytest.param(
                lambda pen: pen.batch(
                    *[status(TaskState.COMPLETED)[0]], status=status(TaskState.COMPLETED)[1]
                ),
                id="an end that keeps the task",
            ),
        ],
    )
    def test_a_batch_that_cannot_be_written_does_not_hinder_the_others(self, spoil: object) -> None:
        assert callable(spoil)
        good, bad = Pen(held("good")), Pen(held("bad"))
        event, row = status(TaskState.WORKING)
        results = append_many([good.batch(event, status=row), spoil(bad)])
        assert results[0] == 2
        assert Task.objects.get(public_id="good").state == TaskState.WORKING

    @pytest.mark.django_db(transaction=True)
    def test_a_task_that_cannot_be_accepted_does_not_hinder_the_others(self) -> None:
        held("task-1")
        results = accept_many(
            [new("task-0"), new("task-1"), new("task-2"), new("task-1", scope=BOB)]
        )
        assert [isinstance(result, Accepted) for result in results] == [True, False, True, True]
        assert Task.objects.count() == 4

    @pytest.mark.django_db(transaction=True)
    def test_one_owner_naming_two_tasks_the_same_gets_one(self) -> None:
        results = accept_many([new("task-1"), new("task-1")])
        assert [isinstance(result, Accepted) for result in results] == [True, False]

    def test_each_gets_its_own_keys_in_whatever_order_they_were_written(self) -> None:
        news = [new(f"task-{n}", context_id=f"c-{(7 * n) % 5}") for n in range(20)]
        for asked, result in zip(news, accept_many(news), strict=True):
            assert isinstance(result, Accepted)
            task = Task.objects.select_related("context").get(pk=result.task)
            assert (task.public_id, task.context.public_id) == (asked.id, asked.context_id)
            assert task.runs.get().pk == result.run
        assert Context.objects.count() == 5

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.backend("stack")
    async def test_what_was_written_beside_a_bad_one_is_not_written_again_after_an_outage(
        self, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sessions, "SHARE_OF_LOCKS", 0.15)
        settings.A2A_DATABASE_SECONDS = 3.0
        good, bad, late = [Pen(await run_in_thread(held, name)) for name in ("good", "bad", "late")]
        event, row = status(TaskState.WORKING)
        batches = [
            good.batch(event, status=row),
            bad.batch(chunk("a", "x"), artifacts=[ArtifactRow(0, "a\x00b", 0)]),
            late.batch(event, status=row),
        ]
        async with row_locked(late.run.task) as let_go:
            asked = [
                asyncio.ensure_future(
                    retry_until_answered(functools.partial(append_batched, batch))
                )
                for batch in batches
            ]
            done, _ = await asyncio.wait(asked, timeout=30, return_when=asyncio.FIRST_COMPLETED)
            assert done
            let_go()
            results = await asyncio.gather(*asked, return_exceptions=True)
        assert (results[0], results[2]) == (2, 2)
        assert await run_in_thread(
            list, Task.objects.order_by("pk").values_list("last_event", flat=True)
        ) == [
            2,
            1,
            2,
        ]


@pytest.mark.django_db
class TestOneThatIsAlwaysRefused:
    """The database has a reason that is on no list, so nobody knows at first whether anything was written."""

    @pytest.mark.django_db(transaction=True)
    async def test_is_given_up_in_the_end_and_those_beside_it_are_written(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(store_db, "REFUSED_SECONDS", 0.0)
        pens = [Pen(await run_in_thread(held, name)) for name in ("before", "bad", "after")]
        texts = ["x", POISON, "x"]
        batches = [
            pen.batch(chunk("a", text), artifacts=[ArtifactRow(0, "a", 0)], after=0)
            for pen, text in zip(pens, texts, strict=True)
        ]
        async with poisonous():
            asked = [
                asyncio.ensure_future(
                    retry_until_answered(functools.partial(append_batched, batch), repeatable=True)
                )
                for batch in batches
            ]
            async with asyncio.timeout(20):
                assert await asked[0] == await asked[2] == 2
                while not asked[1].done():
                    await run_in_thread(Task.objects.count)
        with pytest.raises(TransactionRefused):
            await asked[1]
        numbers = Task.objects.order_by("pk").values_list("last_event", flat=True)
        assert await run_in_thread(list, numbers) == [2, 1, 2]

    @pytest.mark.django_db(transaction=True)
    async def test_what_was_written_all_the_same_is_not_written_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = backend().append_batches

        def write(batches: Sequence[Batch]) -> Any:
            done = real(batches)
            if len(batches) > 1:
                raise InternalError("unknown") from psycopg.errors.InternalError_("unknown")
            return done

        monkeypatch.setattr(backend(), "append_batches", write)
        pens = [Pen(await run_in_thread(held, f"task-{n}")) for n in range(3)]
        batches = [pen.batch(chunk("a", "x"), after=0) for pen in pens]
        asked = [
            retry_until_answered(functools.partial(append_batched, batch), repeatable=True)
            for batch in batches
        ]
        assert await asyncio.gather(*asked) == [2, 2, 2]
        numbers = Task.objects.order_by("pk").values_list("last_event", flat=True)
        assert await run_in_thread(list, numbers) == [2, 2, 2]

    async def test_is_not_tried_alone_where_a_repetition_is_not_recognised(self) -> None:
        tried: list[int] = []

        def work(items: list[str]) -> list[str | Exception]:
            tried.append(len(items))
            raise Overloaded.away(undone=False, blame=Blame.ITSELF)

        group: BatchedCall[str, str] = BatchedCall(work)
        told = await asyncio.gather(*map(group, "abc"), return_exceptions=True)
        assert [type(one) for one in told] == [Overloaded] * 3
        assert tried == [3]


@asynccontextmanager
async def row_locked(task: int) -> AsyncIterator[Callable[[], None]]:
    """Somebody else holds the row of a task until the block ends, or lets it go."""
    held_now, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        try:
            with transaction.atomic():
                Task.objects.select_for_update().get(pk=task)
                held_now.set()
                let_go.wait(60)
        finally:
            connection.close()

    holder = asyncio.create_task(asyncio.to_thread(hold))
    try:
        assert await asyncio.to_thread(held_now.wait, 30)
        yield let_go.set
    finally:
        let_go.set()
        await holder


@pytest.mark.django_db(transaction=True)
class TestGroup:
    async def test_what_is_asked_while_others_are_under_way_goes_together_in_order(self) -> None:
        gate, begun, taken = threading.Event(), threading.Semaphore(0), []

        def work(items: list[int]) -> list[int | Exception]:
            taken.append(items)
            begun.release()
            gate.wait(30)
            return [item * 2 for item in items]

        group: BatchedCall[int, int] = BatchedCall(work)
        lanes = (
            1 if connection.vendor == "sqlite" else LANES
        )  # SQLite has one thread for all writes
        asked = []
        for item in range(lanes):
            asked.append(asyncio.ensure_future(group(item)))
            assert await asyncio.to_thread(begun.acquire, timeout=30)
        asked += [asyncio.ensure_future(group(item)) for item in range(lanes, 40)]
        await asyncio.sleep(0)  # each of them is asked
        gate.set()
        assert await asyncio.gather(*asked) == [item * 2 for item in range(40)]
        assert taken[:lanes] == [[item] for item in range(lanes)]
        assert taken[lanes:] == [list(range(lanes, 40))]

    async def test_an_item_that_cannot_be_written_fails_alone_and_the_others_are_written(
        self,
    ) -> None:
        def work(names: list[str]) -> list[str | Exception]:
            with transaction.atomic():
                for name in names:
                    Budget.objects.create(name=name, unit="calls", limit=-1 if name == "b" else 1)
            return list(names)

        group: BatchedCall[str, str] = BatchedCall(work)
        results = await asyncio.gather(*map(group, "abc"), return_exceptions=True)
        assert [type(result) for result in results] == [str, IntegrityError, str]
        stored = Budget.objects.order_by("name").values_list("name", flat=True)
        assert await run_in_thread(list, stored) == ["a", "c"]

    async def test_an_exception_is_the_items_own_and_what_is_raised_is_everybodys(self) -> None:
        def work(items: list[str]) -> list[str | Exception]:
            if "all" in items:
                raise LookupError("all")
            return [ValueError(item) if item == "one" else item for item in items]

        group: BatchedCall[str, str] = BatchedCall(work)
        results = await asyncio.gather(*map(group, ["a", "one", "b"]), return_exceptions=True)
        assert [type(result) for result in results] == [str, ValueError, str]
        with pytest.raises(LookupError):
            await group("all")
        assert await group("after") == "after"

    async def test_whoever_leaves_does_not_take_the_others_along(self) -> None:
        gate, begun = threading.Event(), threading.Event()

        def work(items: list[int]) -> list[int | Exception]:
            begun.set()
            gate.wait(30)
            return list(items)

        group: BatchedCall[int, int] = BatchedCall(work)
        leaving, staying = asyncio.ensure_future(group(1)), asyncio.ensure_future(group(2))
        await asyncio.to_thread(begun.wait, 30)
        leaving.cancel()
        gate.set()
        assert await staying == 2
        with pytest.raises(asyncio.CancelledError):
            await leaving

    @pytest.mark.parametrize(
        ("size", "together"),
        [(1, 16), (MAX_BYTES // 4, 4), (MAX_BYTES, 1), (MAX_BYTES + 1, 1), (40 * MAX_BYTES, 1)],
    )
    async def test_a_flush_of_several_is_bounded_in_bytes(self, size: int, together: int) -> None:
        taken: list[int] = []

        def work(items: list[int]) -> list[int | Exception]:
            taken.append(len(items))
            return list(items)

        group: BatchedCall[int, int] = BatchedCall(work, size=lambda _: size)
        assert await asyncio.gather(*map(group, range(16))) == list(range(16))
        assert taken == [together] * (16 // together)

    @pytest.mark.backend("stack")  # SQLite has one thread for all writes
    async def test_large_items_do_not_delay_small_ones(self) -> None:
        gate, begun = threading.Event(), threading.Event()

        def work(items: list[int]) -> list[int | Exception]:
            if max(items) > MAX_BYTES:
                begun.set()
                gate.wait(30)
            return list(items)

        group: BatchedCall[int, int] = BatchedCall(work, size=lambda item: item)
        large = [asyncio.ensure_future(group(MAX_BYTES + n)) for n in (1, 2, 3)]
        await asyncio.to_thread(begun.wait, 30)
        assert await asyncio.wait_for(asyncio.gather(*map(group, range(9))), 30) == list(range(9))
        assert not any(each.done() for each in large)
        gate.set()
        assert await asyncio.gather(*large) == [MAX_BYTES + n for n in (1, 2, 3)]

    async def test_accepting_many_at_once_writes_them_all(self, settings: Settings) -> None:
        settings.A2A_DATABASE_SECONDS = (
            60  # SQLite has one thread, and other tests run beside this one
        )
        results = await asyncio.gather(*(accept_batched(new(f"task-{n}")) for n in range(100)))
        assert len({result.task for result in results}) == 100
        assert await run_in_thread(Task.objects.count) == 100
