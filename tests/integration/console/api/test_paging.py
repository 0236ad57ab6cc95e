"""Lists: along the key, from a cursor, in bounded looks; nothing comes twice and nothing is missed."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import HealthCheck, given, settings, strategies
from pytest import MonkeyPatch

from a2a_console.api import pagination
from a2a_console.search import key_ranges, selection
from a2a_tasks.models import Task
from tests.support.console.admin.rows import make_task
from tests.support.console.api.world import asked, person
from tests.support.thorough import examples

pytestmark = pytest.mark.django_db

VIEW = ("a2a_tasks.view_task", "a2a_tasks.view_run", "a2a_push.view_delivery")


def walked(who: Any, path: str, cursor: str = "") -> list[list[str]]:
    """The ids on each page, from the cursor to the last."""
    pages: list[list[str]] = []
    sign = "&" if "?" in path else "?"
    while len(pages) < 100:
        answer = asked(who, f"{path}{sign}cursor={cursor}" if cursor else path)
        assert answer.status == 200, answer.body
        pages.append([item["id"] for item in answer.json["items"]])
        cursor = answer.json["next"]
        if cursor is None:
            return pages
    raise AssertionError("the list does not end")


def flat(pages: list[list[str]]) -> list[str]:
    return [name for page in pages for name in page]


@pytest.fixture
def small(monkeypatch: MonkeyPatch) -> None:
    """A page looks at three keys, where no index helps; bisection goes to the end."""
    monkeypatch.setattr(pagination, "WINDOW", 3)
    monkeypatch.setattr(key_ranges, "BRACKET", 1)
    monkeypatch.setattr(selection, "FIRST", 3)
    monkeypatch.setattr(selection, "PATIENCE", -1)


class TestAList:
    def test_is_in_pages_newest_first(self) -> None:
        names = [make_task(f"t-{n}").public_id for n in range(7)]
        pages = walked(person(*VIEW), "/tasks?size=3")
        assert [len(page) for page in pages] == [3, 3, 1]
        assert flat(pages) == names[::-1]

    def test_stays_what_it_was_while_tasks_come_and_go(self) -> None:
        names = [make_task(f"t-{n}").public_id for n in range(6)]
        bob = person(*VIEW)
        first = asked(bob, "/tasks?size=2").json
        make_task("new")
        Task.objects.get(public_id="t-2").delete()
        Task.objects.filter(public_id="t-3").update(state="TASK_STATE_FAILED")
        rest = flat(walked(bob, "/tasks?size=2", first["next"]))
        assert [item["id"] for item in first["items"]] + rest == [
            name for name in names[::-1] if name != "t-2"
        ]

    def test_never_counts_and_never_skips(self) -> None:
        for n in range(5):
            make_task(f"t-{n}")
        bob = person(*VIEW)
        asked(bob, "/tasks?size=1")
        with CaptureQueriesContext(connection) as queries:
            walked(bob, "/tasks?size=1&owner=alice")
        said = " ".join(query["sql"].lower() for query in queries)
        assert "count(" not in said
        assert "offset" not in said

    @pytest.mark.usefixtures("small")
    def test_steps_over_what_retention_removed(self) -> None:
        make_task("old")
        for n in range(30):
            make_task(f"gone-{n}")
        Task.objects.filter(public_id__startswith="gone").delete()
        make_task("new")
        pages = walked(person(*VIEW), "/tasks?owner=alice")
        assert flat(pages) == ["new", "old"]
        assert len(pages) == 2

    @pytest.mark.usefixtures("small")
    def test_of_a_span_looks_no_further(self) -> None:
        now = timezone.now()
        for n in range(12):
            task = make_task(f"t-{n}")
            Task.objects.filter(pk=task.pk).update(created_at=now - timedelta(hours=12 - n))
        after, before = (
            (now - timedelta(hours=hours)).isoformat().replace("+00:00", "Z") for hours in (8, 5)
        )
        bob = person(*VIEW)
        pages = walked(bob, f"/tasks?created_after={after}&created_before={before}")
        assert flat(pages) == ["t-6", "t-5", "t-4"]
        with CaptureQueriesContext(connection) as queries:
            walked(bob, f"/tasks?owner=alice&created_after={after}&created_before={before}")
        assert len(queries) < 60

    @pytest.mark.parametrize(
        "cursor", ["x", "1", "MQ:abc", "%00", ":" * 200, "WzFd:x"], ids=lambda text: text[:8]
    )
    def test_refuses_a_cursor_that_is_none(self, cursor: str) -> None:
        answer = asked(person(*VIEW), f"/tasks?cursor={cursor}")
        assert answer.code == "invalid"
        assert answer.json["errors"][0]["name"] == "cursor"

    def test_refuses_the_cursor_of_another_list(self) -> None:
        for n in range(2):
            make_task(f"t-{n}")
        bob = person(*VIEW)
        cursor = asked(bob, "/tasks?size=1").json["next"]
        for path in ("/runs", "/webhooks/deliveries"):
            answer = asked(bob, f"{path}?cursor={cursor}")
            assert (answer.status, answer.code) == (400, "invalid")

    @settings(
        max_examples=examples(25, quick=8),
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(
        owners=strategies.lists(strategies.sampled_from("ab"), max_size=9),
        size=strategies.integers(1, 4),
        holes=strategies.sets(strategies.integers(0, 8), max_size=5),
    )
    @pytest.mark.usefixtures("small")
    def test_is_what_the_table_has_however_it_is_cut(
        self, owners: list[str], size: int, holes: set[int]
    ) -> None:
        Task.objects.all().delete()
        made = [make_task(f"t-{n}", owner=owner) for n, owner in enumerate(owners)]
        for n in holes & set(range(len(made))):
            made[n].delete()
        rows = Task.objects.filter(owner="a").select_related("context")
        expected = list(rows.order_by("-pk").values_list("public_id", flat=True))
        for indexed in (False, True):
            found: list[str] = []
            told: dict[str, Any] = {"size": size}
            while True:
                page, following = pagination.KeyPagination().find_page(
                    rows,
                    SimpleNamespace(given=told, indexed=indexed, indexed_parameters=frozenset()),
                )
                found += [task.public_id for task in page]
                if following is None:
                    break
                told = {"size": size, "cursor": following}
            assert found == expected
