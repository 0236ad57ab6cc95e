"""Which tasks an operator means: every filter, the search, and pages by key, on small windows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import HealthCheck, given, settings, strategies

from a2a_console.search import selection, text_search
from a2a_console.search.selection import Selection, page, walk
from a2a_console.search.task_flags import MARKS, TaskFlag
from a2a_tasks.models import Message, Task
from a2a_tasks.protocol.values import TaskState
from tests.support.console.admin.rows import make_task
from tests.support.rows import rows
from tests.support.thorough import examples

pytestmark = pytest.mark.django_db


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "FIRST", 3)
    monkeypatch.setattr(selection, "PATIENCE", -1)


def opened(public_id: str, opening: str, **about: Any) -> Task:
    task = make_task(public_id, **about)
    Message.objects.filter(task=task).update(opening=opening)
    return task


def looks(monkeypatch: pytest.MonkeyPatch, *, keys: int, seconds_a_key: float) -> list[int]:
    """How many keys a page that is never full looks at, look by look."""
    clock, widths = 0.0, []
    monkeypatch.setattr(selection, "monotonic", lambda: clock)
    for floor, top in selection._windows(0, keys):
        widths.append(top - floor)
        clock += (top - floor) * seconds_a_key
    return widths


def found(**asked: Any) -> list[str]:
    """The ids of those that are meant, by a page and by a walk, which agree."""
    wanted = Selection(**asked)
    paged = [task.public_id for task in page(Task.objects.all(), wanted, size=100).items]
    assert paged == [task.public_id for some in walk(Task.objects.all(), wanted) for task in some]
    return paged


class TestFilters:
    @pytest.fixture(autouse=True)
    def four(self) -> None:
        """Four tasks, each unlike the others."""
        make_task("one", owner="carol", context_id="talk")
        two = make_task("two", state=TaskState.FAILED, agent="tables", dialect="v03")
        three = make_task("three", owner="*")
        make_task("four", owner="")
        Task.objects.filter(pk=two.pk).update(origin_binding="GRPC", tenant="acme")
        hours = timezone.now() - timedelta(hours=5)
        Task.objects.filter(pk__lte=three.pk).update(created_at=hours)  # keys grow with time
        Task.objects.filter(pk=three.pk).update(created_by="carol", status_at=hours)

    @rows(
        ("asked", "ids"),
        [
            ({}, ["four", "three", "two", "one"]),
            ({"states": frozenset({TaskState.FAILED})}, ["two"]),
            ({"agent": "tables"}, ["two"]),
            ({"tenant": ""}, ["four", "three", "one"]),
            ({"tenant": "acme"}, ["two"]),
            ({"owner": "carol"}, ["three", "one"]),
            ({"owner": ""}, ["four"]),
            ({"context": "talk"}, ["one"]),
            ({"context": "nothing"}, []),
            ({"dialect": "v03"}, ["two"]),
            ({"binding": "GRPC"}, ["two"]),
            ({"id": "two"}, ["two"]),
            ({"id_prefix": "t"}, ["three", "two"]),
            ({"id_prefix": "T"}, []),
            ({"id": "a\x00b"}, []),
            ({"mark": "nothing"}, []),
            ({"agent": "demo", "owner": "carol", "context": "talk"}, ["one"]),
        ],
        ids=str,
    )
    def test_narrow(self, asked: dict[str, Any], ids: list[str]) -> None:
        assert found(**asked) == ids

    def test_that_few_pass_are_looked_for_in_steps(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """An export waits for one step no longer than for any answer of the database, however long the table is."""
        monkeypatch.setattr(selection, "WINDOW", 1)
        steps = walk(Task.objects.all(), Selection(tenant="nobody"))
        next(steps)
        with CaptureQueriesContext(connection) as queries:
            next(steps)
        assert len(queries) == 1

    @rows("nothing", [{}, {"states": frozenset()}, {"id_prefix": ""}], ids=str)
    def test_that_any_task_passes_do_not_narrow(self, nothing: dict[str, Any]) -> None:
        """Whoever cancels by a variable that turned out to be empty is told so."""
        assert len(found(**nothing)) == 4
        assert not Selection(**nothing).narrows

    def test_narrow_by_moments(self) -> None:
        hour = timezone.now() - timedelta(hours=1)
        assert found(made_before=hour) == ["three", "two", "one"]
        assert found(changed_before=hour) == ["three"]
        assert found(made_after=hour) == ["four"]
        assert found(changed_after=hour) == ["four", "two", "one"]

    def test_narrow_by_marks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        key = Task.objects.get(public_id="two").pk
        monkeypatch.setitem(MARKS, "odd", TaskFlag("odd", "is odd", lambda _: [key]))
        assert found(mark="odd") == ["two"]

    def test_ask_a_bounded_number_of_queries(self) -> None:
        asked = {"owner": "carol", "search": "talk", "id_prefix": "on", "text": "x", "mark": "no"}
        with CaptureQueriesContext(connection) as queries:
            page(Task.objects.all(), Selection(**asked), size=10)  # type: ignore[arg-type]
        assert len(queries) <= 14


class TestWords:
    @pytest.fixture(autouse=True)
    def openings(self) -> None:
        """Three that said something."""
        opened("late", "Why is invoice 4711 LATE?")
        opened("mail", "Write to bob@example.com about invoice-4712; über alles")
        opened("silent", "")

    @rows("common", [False, True])
    @rows(
        ("text", "ids"),
        [
            ("invoice", ["mail", "late"]),
            ("INVO", ["mail", "late"]),
            ("late invoice", ["late"]),
            ("4712", ["mail"]),
            ("example", ["mail"]),
            ("bob@example.com", ["mail"]),
            ("über", ["mail"]),
            ("walrus", []),
            ("'; drop table --", []),
            ("!!!", []),
            ("%", []),
            ("_", []),
        ],
    )
    def test_are_found_where_they_begin(
        self, monkeypatch: pytest.MonkeyPatch, text: str, ids: list[str], common: bool
    ) -> None:
        """Whether their keys are read from the index, or they are looked for along the key."""
        monkeypatch.setattr(selection, "HITS", 0 if common else 10)
        assert found(text=text) == ids

    @pytest.mark.backend("stack")
    def test_known_to_be_common_are_not_counted_up(self) -> None:
        for number in range(30):
            opened(f"t-{number}", f"invoice {number} late")
        with connection.cursor() as cursor:
            cursor.execute("analyze a2a_tasks_message")
        for common in (["invo"], ["invoice", "late"]):
            with CaptureQueriesContext(connection) as queries:
                assert text_search.hits(common, 5_000) is None
            assert len(queries) == 1
        assert len(text_search.hits(["bob", "invoice"], 5_000) or []) == 1

    def test_are_the_same_in_any_order_and_not_too_many(self) -> None:
        assert text_search.words_of("b A b") == ["a", "b"]
        assert len(text_search.words_of(" ".join(map(str, range(100))))) == text_search.MAX_WORDS


class TestTheSearch:
    @pytest.fixture(autouse=True)
    def some(self) -> None:
        """An id that is a word of another task, too."""
        opened("invoice", "nothing of the kind")
        opened("f00d-1", "an invoice", context_id="talk")
        opened("f00d-2", "talk about it")

    @rows(
        ("text", "ids"),
        [
            ("invoice", ["invoice"]),
            (" f00d-1 ", ["f00d-1"]),
            ("talk", ["f00d-1"]),
            ("invo", ["f00d-1", "invoice"]),
            ("f00d", ["f00d-2", "f00d-1"]),
            ("f00", []),
            ("about talk", ["f00d-2"]),
            ("#0", []),
            ("#" + "9" * 30, []),
            ("#x", []),
            ("#\x00", []),
        ],
    )
    def test_means_what_is_called_so_and_else_what_begins_so(
        self, text: str, ids: list[str]
    ) -> None:
        assert found(search=text) == ids

    def test_takes_a_number(self) -> None:
        assert found(search=f"#{Task.objects.get(public_id='f00d-2').pk}") == ["f00d-2"]

    def test_of_many_beginnings_looks_along_the_key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(selection, "HITS", 1)
        assert found(search="f00d") == found(id_prefix="f00d") == ["f00d-2", "f00d-1"]


class TestPages:
    @settings(
        max_examples=examples(30, quick=8),
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(
        owners=strategies.lists(strategies.sampled_from("ab"), max_size=12),
        size=strategies.integers(1, 4),
        holes=strategies.sets(strategies.integers(0, 11), max_size=6),
    )
    @pytest.mark.usefixtures("small")
    def test_there_and_back_are_what_the_table_has(
        self, owners: list[str], size: int, holes: set[int]
    ) -> None:
        Task.objects.all().delete()
        made = [make_task(f"t-{n}", owner=owner) for n, owner in enumerate(owners)]
        for n in holes & set(range(len(made))):
            made[n].delete()
        rows, wanted = Task.objects.all(), Selection(owner="a")
        expected = list(rows.filter(owner="a").order_by("-pk").values_list("pk", flat=True))
        shown = page(rows, wanted, size=size)
        there = [task.pk for task in shown.items]
        while shown.older is not None:
            shown = page(rows, wanted, size=size, before=shown.older)
            there += [task.pk for task in shown.items]
        assert there == expected
        back = {task.pk for task in shown.items}
        for _ in range(40):
            if shown.newer is None:
                break
            shown = page(rows, wanted, size=size, after=shown.newer)
            back |= {task.pk for task in shown.items}
        assert shown.newer is None
        assert back == set(expected)

    def test_that_the_last_tasks_fill_have_no_older_one(self) -> None:
        for n in range(4):
            make_task(f"t-{n}")
        first = page(Task.objects.all(), Selection(), size=2)
        last = page(Task.objects.all(), Selection(), size=2, before=first.older)
        assert [len(first.items), len(last.items)] == [2, 2]
        assert (first.older, last.older) == (first.items[-1].pk, None)

    def test_cost_the_same_however_deep(self) -> None:
        keys = [make_task(f"t-{n}").pk for n in range(30)]
        counts = []
        for before in (keys[29], keys[5]):
            with CaptureQueriesContext(connection) as queries:
                page(Task.objects.all(), Selection(), size=2, before=before)
            counts.append(len(queries))
        assert counts[0] == counts[1] <= 3

    def test_look_at_as_much_more_as_there_is_time_for(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(selection, "FIRST", 8)
        monkeypatch.setattr(selection, "PATIENCE", 1.0)
        assert looks(monkeypatch, keys=10_000, seconds_a_key=1 / 512) == [8, 80, 424]
        assert looks(monkeypatch, keys=100, seconds_a_key=1 / 512) == [8, 80, 12]
        assert looks(monkeypatch, keys=10_000, seconds_a_key=1.0) == [8]

    @pytest.mark.usefixtures("small")
    def test_say_when_they_stopped_looking(self) -> None:
        make_task("old", owner="carol")
        for n in range(6):
            make_task(f"t-{n}")
        first = page(Task.objects.all(), Selection(owner="carol"), size=5)
        assert (first.items, first.unfinished) == ([], True)
        assert page(Task.objects.all(), Selection(), size=3).unfinished is False
