"""What agents keep in a conversation is written with the end of their turn, or not at all, and read back as it was."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from a2a_tasks.caller import OwnerScope
from a2a_tasks.conversation_changes import (
    ConversationChanged,
    ConversationChanges,
    ListChange,
    MemoryChange,
    StoredItems,
    StoredValue,
    ValueKind,
)
from a2a_tasks.models import (
    Context,
    ConversationItem,
    ConversationList,
    ConversationMemory,
    Event,
    Run,
    Task,
)
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import append as appending
from a2a_tasks.store import cancel, conversations, legal_holds, runs
from a2a_tasks.store.append import append, append_many
from a2a_tasks.store.backend import conversation_statements, postgres, statements
from a2a_tasks.store.backend.interface import backend
from a2a_tasks.store.conversations import read_items, read_value
from a2a_tasks.store.legal_holds import HoldKind
from a2a_tasks.store.purge import Removed, RetentionLimits, purge
from a2a_tasks.store.records import Batch, ClaimedRun, LeaseLost, RunEnd
from tests.support.store.world import (
    ALICE,
    BOB,
    CHARLIE,
    Pen,
    at_once,
    chunk,
    claim,
    contents,
    expire,
    held,
    status,
)

pytestmark = pytest.mark.django_db


def put(key: str, value: str | None, expected: int = 0) -> MemoryChange:
    """A text for a key, or its deletion."""
    return MemoryChange(key, expected, ValueKind.TEXT, None if value is None else value.encode())


def grow(
    key: str, *added: str, expected: int = 0, kept: int = 0, trims: bool = False
) -> ListChange:
    """Items for a list, after some that stay."""
    return ListChange(key, expected, kept, trims, added, size=sum(map(len, added)))


def changes(*some: MemoryChange | ListChange) -> ConversationChanges:
    """Changes of both kinds."""
    return ConversationChanges(
        [one for one in some if isinstance(one, MemoryChange)],
        [one for one in some if isinstance(one, ListChange)],
    )


def end(run: ClaimedRun, *some: MemoryChange | ListChange, **more: Any) -> Batch:
    """The last batch of a run, with these changes."""
    event, row = status(TaskState.COMPLETED)
    return Pen(run).batch(event, status=row, end=RunEnd(), conversation=changes(*some), **more)


def turn(task: str, *some: MemoryChange | ListChange, **about: Any) -> int:
    """Take a whole turn of a new task; the run is its version."""
    run = held(task, **about)
    append(end(run, *some))
    return run.key


def kept(task: str = "reader", **about: Any) -> tuple[dict[str, str], dict[str, list[str]]]:
    """What a further task of the conversation reads."""
    found = Task.objects.filter(public_id=task, owner=about.get("scope", ALICE).owner).first()
    key = found.pk if found else held(task, **about).task
    values = ConversationMemory.objects.filter(context__tasks=key).values_list("key", flat=True)
    lists = ConversationList.objects.filter(context__tasks=key).values_list("key", flat=True)
    return (
        {name: read_value(key, name).value.decode() for name in sorted(values)},
        {name: list(read_items(key, name, 0, None).items) for name in sorted(lists)},
    )


class TestValues:
    def test_are_read_by_the_next_task_of_the_conversation(self) -> None:
        version = turn("one", put("name", "Ada"), put("nul", "a\x00b"))
        assert read_value(held("two").task, "name") == StoredValue(version, "text", b"Ada")
        assert kept()[0] == {"name": "Ada", "nul": "a\x00b"}

    def test_a_key_without_one_has_version_zero(self) -> None:
        task = held().task
        assert read_value(task, "name").version == conversations.read_version(task, "name") == 0

    def test_are_replaced_and_deleted_by_a_turn_that_has_read_their_version(self) -> None:
        first = turn("one", put("a", "1"), put("b", "1"))
        second = turn("two", put("a", "2", first), put("b", None, first))
        assert kept() == ({"a": "2"}, {})
        assert conversations.read_version(held("three").task, "a") == second

    @pytest.mark.parametrize("value", ["3", None])
    def test_a_turn_that_has_read_another_version_writes_nothing(self, value: str | None) -> None:
        first = turn("one", put("a", "1"))
        run = held("two")
        turn("three", put("a", "2", first))
        before = contents(ALICE.owner)
        with pytest.raises(ConversationChanged, match="has changed 'a' meanwhile"):
            append(end(run, put("b", "mine"), put("a", value, first)))
        assert contents(ALICE.owner) == before
        assert kept()[0] == {"a": "2"}

    def test_a_key_that_went_and_came_again_is_another_one(self) -> None:
        first = turn("one", put("a", "1"))
        second = turn("two", put("a", None, first))
        turn("three", put("a", "1"))
        with pytest.raises(ConversationChanged):
            append(end(held("four"), put("a", "4", first)))
        assert second != first

    def test_a_turn_that_found_no_key_does_not_replace_one(self) -> None:
        run = held("one")
        turn("two", put("a", "2"))
        with pytest.raises(ConversationChanged):
            append(end(run, put("a", "1")))
        assert kept()[0] == {"a": "2"}


class TestLists:
    def test_grow_item_by_item(self) -> None:
        first = turn("one", grow("log", "1", "2"))
        second = turn("two", grow("log", "3", expected=first, kept=2))
        assert kept()[1] == {"log": ["1", "2", "3"]}
        task = held("three").task
        assert read_items(task, "log", 0, 2) == StoredItems(second, 3, 1, ["2", "3"])
        assert read_items(task, "log", 1, 1).items == ["2"]
        assert read_items(task, "log", 0, 0) == StoredItems(second, 3, 1)
        assert read_items(task, "log", 3, None) == StoredItems(second, 3, 1)
        assert read_items(task, "other", 0, None) == StoredItems()

    def test_are_cut_and_go_on_with_the_same_numbers(self) -> None:
        first = turn("one", grow("log", "1", "2", "3"))
        second = turn("two", grow("log", "4", expected=first, kept=1, trims=True))
        assert kept()[1] == {"log": ["1", "4"]}
        turn("three", grow("log", expected=second, trims=True))
        assert kept()[1] == {"log": []}
        assert not ConversationItem.objects.exists()
        assert conversations.count_keys(held("four").task) == 0

    @pytest.mark.parametrize("expected", [0, 1])
    def test_a_turn_that_has_read_another_version_writes_nothing(self, expected: int) -> None:
        first = turn("one", grow("log", "1"))
        run = held("two")
        turn("three", grow("log", "2", expected=first, kept=1))
        with pytest.raises(ConversationChanged, match="'log'"):
            append(end(run, grow("log", expected=first * expected, kept=0, trims=True)))
        assert kept()[1] == {"log": ["1", "2"]}

    def test_the_thousandth_item_costs_what_the_tenth_does(self) -> None:
        version = turn("start", grow("log", *map(str, range(9))))

        def price(task: str, kept: int, version: int) -> list[str]:
            run = held(task)
            with CaptureQueriesContext(connection) as captured:
                append(end(run, grow("log", "x", expected=version, kept=kept)))
            return [query["sql"].partition(" ")[0] for query in captured]

        few = price("tenth", 9, version)
        tenth = Task.objects.get(public_id="tenth").runs.get().pk
        version = turn("many", grow("log", *["x"] * 989, expected=tenth, kept=10))
        assert price("thousandth", 999, version) == few

    def test_a_read_of_the_end_reads_no_more_than_that(self) -> None:
        turn("one", grow("log", *map(str, range(1000))))
        task = held("two").task
        with CaptureQueriesContext(connection) as captured:
            assert read_items(task, "log", 0, 3).items == ["997", "998", "999"]
        assert len(captured) == 1


class TestTheLaw:
    """No answer without its memory, and no memory without its answer."""

    def test_a_fenced_run_writes_nothing(self) -> None:
        run = held("one")
        expire(run.key)
        runs.reclaim_expired(max_attempts=3)
        (second,) = claim()
        with pytest.raises(LeaseLost):
            append(end(run, put("a", "stolen"), grow("log", "stolen")))
        append(end(second, put("a", "mine"), grow("log", "1")))
        with pytest.raises(LeaseLost):
            append(end(run, put("b", "stolen")))
        assert kept() == ({"a": "mine"}, {"log": ["1"]})

    def test_a_run_whose_task_was_cancelled_writes_nothing(self) -> None:
        run = held("one")
        cancel.cancel(ALICE, "one")
        with pytest.raises(LeaseLost):
            append(end(run, put("a", "1"), grow("log", "1")))
        assert kept() == ({}, {})

    @pytest.mark.parametrize(
        "broken", [put("a", "2", expected=77), grow("log", "2", expected=77)], ids=["value", "list"]
    )
    def test_of_a_batch_that_cannot_be_written_nothing_is(
        self, broken: MemoryChange | ListChange
    ) -> None:
        run = held("one")
        before = contents(ALICE.owner)
        with pytest.raises(ConversationChanged):
            append(end(run, put("b", "1"), grow("other", "1"), broken))
        assert contents(ALICE.owner) == before
        assert Run.objects.get(pk=run.key).status == "running"
        assert kept() == ({}, {})

    def test_of_many_together_one_that_cannot_be_written_spoils_no_other(self) -> None:
        one, two, three = (held(f"task-{n}", context_id=f"c{n}") for n in (1, 2, 3))
        results = append_many(
            [
                end(one, put("a", "1")),
                end(two, put("a", "2", expected=77)),
                end(three, grow("log", "3")),
            ]
        )
        assert results[::2] == [2, 2]
        assert isinstance(results[1], ConversationChanged)
        assert kept("reader", context_id="c1") == ({"a": "1"}, {})
        assert kept("third", context_id="c3") == ({}, {"log": ["3"]})

    @pytest.mark.parametrize("change", [put("a", "x"), grow("log", "x")], ids=["value", "list"])
    def test_of_two_runs_of_one_conversation_that_end_together_the_second_fails(
        self, change: MemoryChange | ListChange
    ) -> None:
        first, second = append_many([end(held(f"task-{n}"), change) for n in (1, 2)])
        assert first == 2
        assert isinstance(second, ConversationChanged)

    def test_a_repetition_is_applied_once(self) -> None:
        batch = end(held("one"), grow("log", "1"), put("a", "1"), after=0)
        assert append(batch) == 2
        batch.come_again()
        assert append(batch) == 2
        assert kept() == ({"a": "1"}, {"log": ["1"]})
        assert Event.objects.filter(run=batch.run).count() == 1

    def test_a_repetition_of_what_was_never_written_is_written(self) -> None:
        batch = end(held("one"), grow("log", "1"), put("a", "1"), after=0, again=True)
        assert append(batch) == 2
        assert kept() == ({"a": "1"}, {"log": ["1"]})

    def test_a_repetition_after_another_run_went_on_is_still_known(self) -> None:
        batch = end(held("one"), grow("log", "1"), after=0)
        append(batch)
        turn("two", grow("log", "2", expected=batch.run, kept=1))
        batch.come_again()
        assert append(batch) == 2
        assert kept()[1] == {"log": ["1", "2"]}

    def test_a_batch_without_changes_costs_no_statement_more(self) -> None:
        def statements(*some: MemoryChange) -> int:
            run = held(f"task-{Task.objects.count()}")
            batch = end(run, *some)
            batch.conversation = batch.conversation if some else None
            with CaptureQueriesContext(connection) as captured:
                append(batch)
            return len(captured)

        plain = statements()
        assert statements(put("a", "1")) > plain
        assert statements() == plain

    def test_the_size_of_a_batch_counts_its_changes(self) -> None:
        run = held()
        less = end(run).size
        assert end(run, put("a", "x" * 1000), grow("log", "y" * 500)).size == less + 1500


class TestRaces:
    @pytest.mark.django_db(transaction=True)
    @pytest.mark.parametrize("change", [put("a", "x"), grow("log", "x")], ids=["value", "list"])
    def test_of_two_that_begin_a_key_at_once_one_does(
        self, change: MemoryChange | ListChange
    ) -> None:
        batches = [end(held(f"task-{n}"), change) for n in range(4)]
        results = at_once(*(lambda batch=batch: append(batch) for batch in batches))
        assert sorted(type(result).__name__ for result in results) == [
            *["ConversationChanged"] * 3,
            "int",
        ]

    @pytest.mark.django_db(transaction=True)
    def test_of_many_that_change_a_list_at_once_one_does_and_it_has_no_gap(self) -> None:
        version = turn("start", grow("log", "1", "2"), put("a", "1"))
        batches = [
            end(held("cut"), grow("log", "x", expected=version, kept=1, trims=True)),
            end(held("grow"), grow("log", "y", expected=version, kept=2)),
            end(held("clear"), put("a", "2", version), grow("log", expected=version, trims=True)),
        ]
        results = at_once(*(lambda batch=batch: append(batch) for batch in batches))
        (winner,) = [
            batch.run for batch, result in zip(batches, results, strict=True) if result == 2
        ]
        row = ConversationList.objects.get()
        assert row.version == winner
        numbers = list(row.items.order_by("number").values_list("number", flat=True))
        assert numbers == list(range(1, row.count + 1))

    def test_a_failure_after_the_events_takes_the_events_back(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As of a process that dies between the two statements."""
        batch = end(held("one"), put("a", "1"))
        real = backend().append_batches

        def write(batches: Any) -> Any:
            with transaction.atomic():
                real(batches)
                raise OperationalError("died")

        with monkeypatch.context() as patch:
            patch.setattr(backend(), "append_batches", write)
            with pytest.raises(OperationalError):
                append(batch)
        assert Event.objects.count() == 1
        assert not ConversationMemory.objects.exists()
        assert append(batch) == 2
        assert kept()[0] == {"a": "1"}


#: The failpoints that a last batch passes outside its transaction, and its statements, on PostgreSQL.
PASSED = ["worker.append_begins", "worker.ended", "worker.announced"]
STATEMENTS = [
    "insert into a2a_tasks_event",
    "a2a_tasks_conversationmemory",
    "conversationlist l set",
]


class TestCrashes:
    @pytest.mark.parametrize(
        "point",
        [*PASSED, *(pytest.param(one, marks=pytest.mark.backend("stack")) for one in STATEMENTS)],
    )
    def test_at_each_point_leave_the_answer_with_its_memory_or_neither(
        self, monkeypatch: pytest.MonkeyPatch, point: str
    ) -> None:
        left = [point]

        def crash(where: str) -> None:
            if left and left[0] in where:
                left.clear()
                raise OperationalError("died")

        def fetch_and_crash(sql: str, *about: Any, **more: Any) -> list[Any]:
            found = statements.fetch(sql, *about, **more)
            crash(sql)
            return found

        batch = end(held("one"), put("a", "1"), grow("log", "1"), after=0)
        monkeypatch.setattr(appending, "failpoint", crash)
        for module in (postgres, conversation_statements):
            monkeypatch.setattr(module, "fetch", fetch_and_crash)
        with pytest.raises(OperationalError):
            append(batch)
        is_written = point in {"worker.ended", "worker.announced"}
        rows = [Event.objects.count() - 1, ConversationMemory.objects.count()]
        assert [*rows, ConversationItem.objects.count()] == [is_written] * 3
        batch.come_again()
        assert append(batch) == 2, "the same process goes on"
        assert kept() == ({"a": "1"}, {"log": ["1"]})


class TestApart:
    """A conversation is of one owner, one tenant and one agent."""

    @pytest.mark.parametrize(
        "other",
        [BOB, CHARLIE, OwnerScope("", ALICE.owner, "another")],
        ids=["owner", "tenant", "agent"],
    )
    def test_the_same_context_id_elsewhere_is_another_conversation(self, other: OwnerScope) -> None:
        turn("one", put("a", "alice's"), grow("log", "alice's"))
        foreign = held("foreign", scope=other)
        assert read_value(foreign.task, "a") == StoredValue()
        assert read_items(foreign.task, "log", 0, None) == StoredItems()
        assert conversations.count_keys(foreign.task) == 0
        append(end(foreign, put("a", "another's"), grow("log", "another's")))
        assert kept() == ({"a": "alice's"}, {"log": ["alice's"]})
        assert Context.objects.count() == 2

    def test_another_context_of_the_same_owner_is_another_conversation(self) -> None:
        turn("one", put("a", "1"))
        assert kept("two", context_id="another") == ({}, {})


def test_cutting_takes_no_items_of_other_lists() -> None:
    first = turn("one", grow("log", "1", "2"), grow("other", "1", "2"))
    turn("elsewhere", grow("log", "1"), scope=BOB)
    turn("two", grow("log", expected=first, trims=True))
    assert kept() == ({}, {"log": [], "other": ["1", "2"]})
    assert ConversationItem.objects.count() == 3


def test_a_turn_that_was_written_reads_chunks_and_values_together() -> None:
    run = held("one")
    batch = end(run, put("a", "1"))
    batch.events.insert(0, chunk("x", "said"))
    assert append(batch) == 3
    assert kept()[0] == {"a": "1"}


def told(task: str, days: float = 40, **about: Any) -> int:
    """A task that ended so many days ago and left a value, and a list of 30 items; its run."""
    version = turn(task, put(task, "kept"), grow(f"log of {task}", *map(str, range(30))), **about)
    then = timezone.now() - timedelta(days=days)
    Task.objects.filter(public_id=task).update(created_at=then, status_at=then)
    Context.objects.filter(tasks__public_id=task).update(created_at=then, updated_at=then)
    return version


def everything_kept() -> list[int]:
    """The numbers of rows of all conversations."""
    kinds = (ConversationMemory, ConversationList, ConversationItem)
    return [kind.objects.count() for kind in kinds]


def purged() -> Removed:
    return sum(purge(RetentionLimits.of(30, 0)), Removed())


class TestRemoval:
    def test_goes_with_the_last_task_of_the_conversation(self) -> None:
        told("old")
        told("young", days=1)
        assert (purged().tasks, everything_kept()) == (1, [2, 2, 60])
        told("young-too", days=1, context_id="another")
        Task.objects.filter(public_id="young").update(status_at=timezone.now() - timedelta(days=40))
        Context.objects.filter(public_id="context-1").update(
            updated_at=timezone.now() - timedelta(days=40)
        )
        removed = purged()
        assert (removed.tasks, removed.contexts, everything_kept()) == (1, 1, [1, 1, 30])

    def test_takes_no_more_rows_at_once_than_a_batch_has(self, settings: Any) -> None:
        settings.A2A_PURGE_BATCH = 10
        told("one")
        told("two", context_id="another")
        portions = [removed.rows for removed in purge(RetentionLimits.of(30, 0))]
        assert max(portions) <= 10
        assert sum(portions) > 60
        assert everything_kept() == [0, 0, 0]

    @pytest.mark.parametrize(
        ("kind", "name"),
        [
            (HoldKind.TASK, "old"),
            (HoldKind.CONTEXT, "context-1"),
            (HoldKind.PRINCIPAL, ALICE.owner),
            (HoldKind.TENANT, ""),
        ],
    )
    def test_leaves_what_is_held(self, kind: HoldKind, name: str) -> None:
        told("old")
        hold = legal_holds.lay(kind, name, "a lawsuit")
        assert (purged().tasks, everything_kept()) == (0, [1, 1, 30])
        legal_holds.release(hold.pk)
        assert (purged().tasks, everything_kept()) == (1, [0, 0, 0])

    def test_of_a_list_whose_conversation_went_takes_no_item_of_another(self) -> None:
        told("old")
        told("young", days=1, context_id="another")
        purged()
        assert kept("reader", context_id="another")[1] == {
            "log of young": [str(n) for n in range(30)]
        }
