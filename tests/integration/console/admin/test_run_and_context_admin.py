"""The run and context admins."""

from __future__ import annotations

import datetime

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from a2a_tasks.access.api_keys import issue, principal_of
from a2a_tasks.conversation_changes import ValueKind
from a2a_tasks.models import (
    PARKED,
    Context,
    ConversationItem,
    ConversationList,
    ConversationMemory,
    Run,
    RunStatus,
    Task,
)
from a2a_tasks.store import run_lines
from a2a_tasks.store.run_lines import RunLogLine
from tests.support.console.admin.rows import add_run, make_task
from tests.support.console.api.world import person
from tests.support.rows import rolled_back, rows
from tests.support.thorough import thorough

pytestmark = pytest.mark.django_db

RUNS, CONTEXTS = "/admin/a2a_tasks/run/", "/admin/a2a_tasks/context/"


class TestBothLists:
    @pytest.mark.parametrize(
        ("page", "query"),
        [
            *((RUNS, query) for query in ("?q=task-3", "?created=day")),
            *(thorough(RUNS, query) for query in ("", "?status=failed", "?status=running")),
            (CONTEXTS, ""),
            thorough(CONTEXTS, "?agent=demo"),
        ],
    )
    def test_count_no_table_and_ask_the_same_few_queries(
        self, admin_client: Client, page: str, query: str
    ) -> None:
        for number in range(5):
            add_run(make_task(f"task-{number}"), RunStatus.FAILED)
        few = self.queries(admin_client, page + query)
        for number in range(5, 40):
            add_run(make_task(f"task-{number}", context_id=f"context-{number}"), RunStatus.FAILED)
        many = self.queries(admin_client, page + query)
        assert len(many) <= len(few) <= 10
        counts = [sql for sql in many if "COUNT(" in sql and "a2a_tasks_" in sql]
        assert all("LIMIT" in statement for statement in counts)

    @staticmethod
    def queries(client: Client, url: str) -> list[str]:
        """The queries of a page, when what the process remembers for seconds has not just expired."""
        asked = []
        for _ in range(3):
            with CaptureQueriesContext(connection) as captured:
                assert client.get(url).status_code == 200
            asked.append([query["sql"] for query in captured.captured_queries])
        return min(asked, key=len)


class TestRuns:
    def test_are_found_by_status_and_by_the_id_of_their_task(self, admin_client: Client) -> None:
        failed = add_run(make_task("one"), RunStatus.FAILED)
        queued = add_run(make_task("two"))
        parked = add_run(make_task("three"), round=PARKED, parked_in="night")
        for query, expected in [
            ("?status=failed", failed),
            ("?status=queued", queued),
            ("?status=parked", parked),
            ("?q=two", queued),
        ]:
            answer = admin_client.get(RUNS + query)
            assert list(answer.context["cl"].result_list) == [expected]

    def test_say_that_they_are_parked_in_which_step_and_until_when(
        self, admin_client: Client
    ) -> None:
        noon = datetime.datetime(2100, 1, 1, 12, tzinfo=datetime.UTC)
        run = add_run(make_task(), round=PARKED, parked_in="night", due_at=noon)
        page = admin_client.get(reverse("admin:a2a_tasks_run_change", args=[run.pk])).text
        assert ("parked</span>" in page, "night" in page, "2100-01-01" in page) == (True,) * 3
        of_task = admin_client.get(
            reverse("admin:a2a_tasks_task_change", args=[run.task_id]), {"tab": "facts"}
        ).text
        assert "parked in the step night until 2100-01-01" in of_task

    def test_show_the_end_of_a_long_trace(self, admin_client: Client) -> None:
        run = add_run(make_task(), RunStatus.FAILED, error="x" * 50_000 + "ValueError: in the end")
        answer = admin_client.get(reverse("admin:a2a_tasks_run_change", args=[run.pk]))
        assert "ValueError: in the end" in answer.text
        assert len(answer.content) < 40_000


class TestContexts:
    def test_are_found_by_their_id_and_show_their_tasks(self, admin_client: Client) -> None:
        task = make_task("the-task", context_id="talk")
        make_task("another", context_id="other")
        found = admin_client.get(CONTEXTS + "?q=talk").context["cl"].result_list
        assert list(found) == [task.context]
        body = admin_client.get(
            reverse("admin:a2a_tasks_context_change", args=[task.context_id])
        ).text
        assert "the-task" in body
        assert "another" not in body

    def test_name_their_owner_and_lead_to_its_tasks(self, admin_client: Client) -> None:
        key = principal_of(issue("acme-bot").row)
        task = make_task(owner=key)
        one = reverse("admin:a2a_tasks_context_change", args=[task.context_id])
        for page in (CONTEXTS, one):
            assert f'title="{key}">acme-bot</a>' in admin_client.get(page).text


class TestTheMemoryOfAContext:
    def keep(self, context: Context, **values: bytes) -> None:
        for key, value in values.items():
            kind = ValueKind.BYTES if key == "raw" else ValueKind.TEXT
            ConversationMemory.objects.create(
                context=context, key=key, version=7, kind=kind, value=value
            )

    def page(self, client: Client, context: Context) -> str:
        return client.get(reverse("admin:a2a_tasks_context_change", args=[context.pk])).text

    def test_shows_values_and_lists_cut_and_escaped(self, admin_client: Client) -> None:
        context = make_task().context
        self.keep(context, name=b"<b>Ada</b>", raw=b"\xff\x00", long=b"x" * 100_000)
        log = ConversationList.objects.create(
            context=context, key="log", version=8, count=1000, size=9000
        )
        ConversationItem.objects.bulk_create(
            ConversationItem(list=log, number=n, value=f'"item-{n}-{"y" * 1000}"')
            for n in range(1, 1001)
        )
        page = self.page(admin_client, context)
        for shown in ("&lt;b&gt;Ada&lt;/b&gt;", "ff 00", "97.7", "/a2a_tasks/run/7/change/"):
            assert shown in page
        assert ">1000<" in page
        assert [n for n in range(1, 1001) if f"item-{n}-" in page] == [996, 997, 998, 999, 1000]
        assert len(page) < 40_000

    def test_reads_no_value_whole_and_asks_the_same_few_queries(self, admin_client: Client) -> None:
        few, many = make_task("one").context, make_task("two", context_id="many").context
        self.keep(few, name=b"x")
        ConversationList.objects.create(context=few, key="log", version=8, count=0, size=0)
        for number in range(120):
            self.keep(many, **{f"key-{number:03}": b"x" * 10_000})
            ConversationList.objects.create(
                context=many, key=f"log-{number}", version=8, count=0, size=0
            )
        counts = []
        for context in (few, many):
            self.page(admin_client, context)
            with CaptureQueriesContext(connection) as captured:
                page = self.page(admin_client, context)
            counts.append(len(captured))
        assert counts[0] == counts[1]
        assert "The first 100 values and the first 50 lists are shown." in page
        assert "key-099" in page
        assert "key-100" not in page

    def test_is_of_this_context_alone(self, admin_client: Client) -> None:
        mine, other = make_task("one").context, make_task("two", context_id="other").context
        self.keep(mine, mine=b"kept here")
        assert "kept here" in self.page(admin_client, mine)
        assert "kept here" not in self.page(admin_client, other)

    @rows("rights", [["context"], ["context", "task"]], within=rolled_back)
    @rows("tenant", ["", "acme"], within=rolled_back)
    def test_is_for_those_who_may_view_tasks_of_its_tenant(
        self, rights: list[str], tenant: str
    ) -> None:
        context = make_task().context
        Context.objects.update(tenant=tenant)
        self.keep(context, mine=b"kept here")
        client = person(*(f"a2a_tasks.view_{right}" for right in rights), tenants=("",))
        page = self.page(client, context)
        assert ("kept here" in page) == ("task" in rights and not tenant)


class TestTheLogOfARun:
    def page(self, client: Client, run: Run) -> str:
        return client.get(f"{RUNS}{run.pk}/change/").content.decode()

    def test_is_on_its_page_escaped_with_levels(self, admin_client: Client) -> None:
        run = add_run(make_task())
        said = [(20, "fine"), (40, "<script>alert(1)</script>")]
        run_lines.write(
            [RunLogLine(run.pk, 1, run.created_at, level, "x", text) for level, text in said]
        )
        page = self.page(admin_client, run)
        assert "&lt;script&gt;alert(1)" in page
        assert "<script>alert(1)" not in page
        assert page.index("fine") < page.index("&lt;script&gt;")
        assert "a2a-level-error" in page

    def test_shows_the_last_lines_and_says_how_many_there_were_before(
        self, admin_client: Client
    ) -> None:
        run = add_run(make_task())
        lines = [
            RunLogLine(run.pk, 1, run.created_at, 20, "x", f"line-{n}-") for n in range(1, 521)
        ]
        run_lines.write(lines)
        page = self.page(admin_client, run)
        assert "The 20 lines before these" in page
        assert "line-20-" not in page
        assert "line-21-" in page
        assert "line-520-" in page

    @rows(("tenants", "shown"), [(("",), True), (("acme",), False)], within=rolled_back)
    def test_is_hidden_from_the_staff_of_a_tenant(
        self, tenants: tuple[str, ...], shown: bool
    ) -> None:
        task = make_task()
        Task.objects.filter(pk=task.pk).update(tenant=tenants[0])
        run = add_run(task)
        run_lines.write([RunLogLine(run.pk, 1, run.created_at, 20, "x", "a path of the host")])
        client = person("a2a_tasks.view_run", "a2a_tasks.view_task", tenants=tenants)
        assert ("a path of the host" in self.page(client, run)) == shown
        timeline = client.get(f"/admin/a2a_tasks/task/{task.pk}/change/").text
        assert ("a path of the host" in timeline) == shown
