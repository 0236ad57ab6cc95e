"""The task admin: lists that stay fast, a page that shows everything safely, and the cancel action."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any, cast

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission, User
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from a2a_console.search import key_ranges, selection
from a2a_tasks.access.api_keys import issue, principal_of
from a2a_tasks.models import LONG_COLUMNS, Event, RunStatus, StoredFile, Task
from a2a_tasks.operations import cancel_task
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.protocol.lifecycle import EventKind
from a2a_tasks.protocol.values import TaskState
from tests.support.console.admin.people import SignIn
from tests.support.console.admin.rows import add_artifact, add_run, add_status, add_step, make_task
from tests.support.rows import rolled_back, rows
from tests.support.thorough import thorough

pytestmark = pytest.mark.django_db

LIST = "/admin/a2a_tasks/task/"
SCRIPT = "<script>alert(1)</script>"


def page_of(task: Task) -> str:
    return reverse("admin:a2a_tasks_task_change", args=[task.pk])


def kept(task: Task, content: bytes, **about: str) -> str:
    """A file of the task; its id."""
    name = storages["a2a_files"].save(f"admin-{task.pk}", ContentFile(content))
    row = StoredFile.objects.create(
        task=task, agent=task.agent, size=len(content), sha256="0" * 64, name=name, **about
    )
    return str(row.pk)


def ids_listed(client: Client, query: str) -> list[str]:
    answer = client.get(LIST + query)
    assert answer.status_code == 200, answer.status_code
    return [task.public_id for task in answer.context["cl"].result_list]


class TestTheList:
    def test_keeps_that_order_whatever_the_address_asks_for(self, admin_client: Client) -> None:
        make_task("older", agent="a")
        make_task("newer", agent="b")
        assert ids_listed(admin_client, "?o=3") == ["newer", "older"]

    @rows(
        ("query", "found"),
        [
            ("?state=unfinished", ["working", "submitted"]),
            ("?agent=gone", []),
            ("?dialect=v03", []),
            ("?state=failed&agent=demo&dialect=v10&created=hour", ["failed"]),
        ],
        within=rolled_back,
    )
    def test_filters(self, admin_client: Client, query: str, found: list[str]) -> None:
        make_task("submitted")
        make_task("failed", state=TaskState.FAILED)
        make_task("working", state=TaskState.WORKING)
        assert ids_listed(admin_client, query) == found

    @pytest.mark.parametrize(
        ("span", "found"),
        [("hour", ["minutes"]), ("day", ["minutes", "hours"]), ("older-day", ["days"])],
    )
    @pytest.mark.parametrize("bracket", [1, 1000])
    def test_filters_by_age_however_far_the_keys_are_searched(
        self,
        admin_client: Client,
        monkeypatch: pytest.MonkeyPatch,
        span: str,
        found: list[str],
        bracket: int,
    ) -> None:
        monkeypatch.setattr(key_ranges, "BRACKET", bracket)
        for public_id in ("days", "hours", "minutes"):
            task = make_task(public_id)
            age = timedelta(**{public_id: 3})
            Task.objects.filter(pk=task.pk).update(created_at=timezone.now() - age)
        assert ids_listed(admin_client, f"?created={span}") == found

    def test_finds_by_task_id_and_by_context_id_and_only_by_the_whole_of_it(
        self, admin_client: Client
    ) -> None:
        make_task("one", context_id="talk")
        make_task("two", context_id="talk")
        make_task("three", context_id="other")
        assert ids_listed(admin_client, "?q=three") == ["three"]
        assert ids_listed(admin_client, "?q=talk") == ["two", "one"]
        assert ids_listed(admin_client, "?q=tal") == []
        assert ids_listed(admin_client, "?q=a%00b") == ["three", "two", "one"]

    @rows(
        "query",
        [
            *("?memory__contains=x", "?context__public_id=x"),  # no index
            *("?state=nonsense", "?created=x", "?ended=x", "?mark=x", "?binding=x", "?dialect=x"),
        ],
        within=rolled_back,
    )
    def test_refuses_what_no_filter_offers_on_a_page_that_says_so(
        self, admin_client: Client, query: str
    ) -> None:
        task = make_task("one", state=TaskState.WORKING)
        answer = admin_client.get(LIST + query)
        assert answer.status_code == 400
        assert " is unknown; " in answer.text or " is no filter; filters are " in answer.text
        assert not answer.context["cl"].result_list
        said = {"action": "cancel_selected", "_selected_action": [task.pk]}
        answer = admin_client.post(LIST + query, said)
        assert answer.status_code == 400
        assert "an unknown filter or value" in answer.text

    def test_reads_filters_in_its_search_line_into_its_address(self, admin_client: Client) -> None:
        make_task("failed", state=TaskState.FAILED)
        slow = make_task("slow", state=TaskState.FAILED)
        Task.objects.filter(pk=slow.pk).update(created_at=timezone.now() - timedelta(hours=1))
        answer = admin_client.get(LIST, {"q": "state:failed took:>5s note:x", "agent": "demo"})
        assert answer.status_code == 302
        assert answer["Location"] == "?q=note%3Ax&agent=demo&state=failed&took=%3E5s"
        assert ids_listed(admin_client, "?state=failed&took=>5s") == ["slow"]
        assert ids_listed(admin_client, "?state=failed&took=<5min") == ["failed"]
        words = "state=bogus is unknown; states are submitted, working"
        assert words in admin_client.get(f"{LIST}?state=bogus").text

    def test_counts_by_state_and_says_what_is_stuck(self, admin_client: Client) -> None:
        make_task("failed", state=TaskState.FAILED)
        make_task("asks", state=TaskState.INPUT_REQUIRED)
        add_run(make_task("stuck"), queue="crawl", due_at=timezone.now() - timedelta(hours=1))
        answer = admin_client.get(LIST)
        numbers = {tab.label: tab.number for tab in answer.context["cl"].tabs}
        assert numbers == {
            "All": "3",
            "Running": "1",
            "Waiting for people": "1",
            "Stuck": "1",
            "Failed": "1",
            "Completed": "0",
        }
        assert "no worker for the queue crawl</span>" in answer.text
        assert ids_listed(admin_client, "?stuck=any") == ["stuck"]
        assert ids_listed(admin_client, "?stuck=lost") == []
        narrowed = admin_client.get(f"{LIST}?agent=demo").context["cl"]
        assert {tab.number for tab in narrowed.tabs} == {""}
        assert narrowed.chips[0][:2] == ("agent", "demo")

    def test_keeps_views_for_its_user(self, admin_client: Client, sign_in: SignIn) -> None:
        said = {"name": SCRIPT, "query": "state=failed&columns=id"}
        answer = admin_client.post(f"{LIST}views/", said, follow=True)
        assert '<a href="?state=failed&amp;columns=id">&lt;script&gt;' in answer.text
        for bad in ({"name": " "}, {"name": "long", "query": "x" * 3000}):
            assert "was not saved" in admin_client.post(f"{LIST}views/", bad, follow=True).text
        assert "&lt;script&gt;" not in sign_in("view_task").get(LIST).text
        admin_client.force_login(User.objects.get(username="admin"))
        answer = admin_client.post(f"{LIST}views/", {**said, "remove": ""}, follow=True)
        assert "&lt;script&gt;" not in answer.text

    def test_teaches_how_to_begin_where_there_is_no_task(self, admin_client: Client) -> None:
        text = admin_client.get(LIST).text
        assert "curl -s http://testserver/agents/demo/message:send" in text
        assert "curl" not in admin_client.get(f"{LIST}?state=failed").text
        make_task()
        assert "curl" not in admin_client.get(LIST).text

    def test_tells_of_new_tasks(self, admin_client: Client) -> None:
        first = make_task("first")
        assert f"top={first.pk}" in admin_client.get(LIST).text
        news = f"{LIST}news/?state=failed&top={first.pk}"
        make_task("second")
        assert admin_client.get(news).status_code == 204
        make_task("third", state=TaskState.FAILED)
        assert admin_client.get(news).text == '<a class="a2a-pill" href="?state=failed">1 new</a>'
        assert admin_client.get(f"{LIST}news/?state=bogus&top=1").status_code == 404

    def test_shows_the_columns_that_are_chosen(self, admin_client: Client) -> None:
        make_task("one", context_id="talk")
        assert ">talk</span>" not in admin_client.get(LIST).text
        text = admin_client.get(f"{LIST}?columns=context&columns=id&columns=memory").text
        assert ">talk</span>" in text
        assert "columns=context" in text
        assert ids_listed(admin_client, "?columns=id") == ["one"]

    def test_draws_its_tasks_over_time_with_links_to_each_span(self, admin_client: Client) -> None:
        ages = {"old": 60, "mid": 30, "new": 0}
        for name, minutes in ages.items():
            task = make_task(name, state=TaskState.FAILED)
            at = timezone.now() - timedelta(minutes=minutes)
            Task.objects.filter(pk=task.pk).update(created_at=at)
        strip = admin_client.get(LIST).context["cl"].strip
        assert len(strip.bars) == 3
        assert [bar.failed for bar in strip.bars] == [40.0] * 3
        found = [ids_listed(admin_client, bar.url) for bar in strip.bars]
        assert found == [["old"], ["mid"], ["new"]]

    @pytest.mark.parametrize(
        "query",
        [
            thorough(""),
            "?q=task-3",
            "?state=submitted&created=day",
            thorough("?dialect=v10"),
            thorough("?_facets=True"),
        ],
    )
    def test_counts_no_table_and_asks_the_same_few_queries_for_any_number_of_rows(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch, query: str
    ) -> None:
        # Keys go on from test to test: after how many steps the search by age ends would be chance, and so would be
        # into how many windows they fall, and how many of these there is time for.
        monkeypatch.setattr(key_ranges, "BRACKET", 10**9)
        monkeypatch.setattr(selection, "FIRST", 10**9)
        for number in range(5):
            make_task(f"task-{number}")
        with CaptureQueriesContext(connection) as few:
            admin_client.get(LIST + query)
        for number in range(5, 30):
            make_task(f"task-{number}", context_id=f"context-{number}")
        with CaptureQueriesContext(connection) as many:
            admin_client.get(LIST + query)
        assert len(many) <= len(few) <= 22
        for asked in many.captured_queries:
            statement = asked["sql"].upper()
            if "A2A_TASKS_" in statement:
                assert "COUNT(" not in statement or "LIMIT" in statement, statement
                assert "DISTINCT" not in statement, statement

    @pytest.fixture
    def five(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Five are on a page."""
        monkeypatch.setattr(admin.site.get_model_admin(Task), "list_per_page", 5)

    @pytest.mark.usefixtures("five")
    def test_is_paged_by_key_and_back(self, admin_client: Client) -> None:
        names = [make_task(f"task-{number}").public_id for number in range(12)][::-1]
        first = admin_client.get(LIST)
        assert "5 tasks, newest first" in first.text
        assert first.context["cl"].newer == ""
        older = [ids_listed(admin_client, "")]
        links = [""]
        while link := admin_client.get(LIST + links[-1]).context["cl"].older:
            links.append(link)
            older.append(ids_listed(admin_client, link))
        assert [name for page in older for name in page] == names
        back = admin_client.get(LIST + links[2]).context["cl"].newer
        assert ids_listed(admin_client, back) == older[1]
        back = admin_client.get(LIST + back).context["cl"].newer
        assert ids_listed(admin_client, back) == older[0]

    @pytest.mark.usefixtures("five")
    def test_keeps_its_filters_from_page_to_page_and_not_its_page_from_filter_to_filter(
        self, admin_client: Client
    ) -> None:
        for number in range(12):
            make_task(f"task-{number}", owner="ab"[number % 2])
        page = admin_client.get(LIST + "?owner=a").context["cl"]
        assert "owner=a" in page.older
        assert "before=" in page.older
        assert "before=" not in admin_client.get(LIST + page.older).context["cl"].newest
        assert len(ids_listed(admin_client, page.older)) == 1

    def test_says_where_it_stopped_looking(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(selection, "FIRST", 10)
        monkeypatch.setattr(selection, "PATIENCE", -1)
        make_task("old", owner="carol")
        for number in range(15):
            make_task(f"task-{number}")
        answer = admin_client.get(LIST + "?owner=carol")
        assert "among the newest 10" in answer.text
        assert ids_listed(admin_client, "?owner=carol") == []
        assert ids_listed(admin_client, answer.context["cl"].older) == ["old"]

    def test_reads_no_bodies(self, admin_client: Client) -> None:
        make_task()
        with CaptureQueriesContext(connection) as asked:
            assert admin_client.get(LIST).status_code == 200
        read = " ".join(query["sql"] for query in asked.captured_queries)
        assert '"a2a_tasks_task"."state"' in read
        assert [name for name in LONG_COLUMNS if f'"{name}"' in read] == []

    def test_says_why_and_hides_what_only_operators_may_read(
        self, admin_client: Client, sign_in: SignIn
    ) -> None:
        task, told = make_task(), {"parts": [{"text": "The agent failed."}]}
        row = Task.objects.filter(pk=task.pk)
        row.update(state=TaskState.FAILED, status_text="ValueError: <b>no", tenant="acme")
        row.update(status_message=json.dumps(told), run_token="")
        assert "ValueError: &lt;b&gt;no</span>" in admin_client.get(LIST).text
        client = sign_in("view_task", "view_run")
        User.objects.get(username="bob").groups.add(Group.objects.create(name="tenant:acme"))
        theirs = client.get(LIST).text
        assert "ValueError" not in theirs
        assert ">The agent failed.</span>" in theirs


class TestOwners:
    def test_are_called_by_the_names_of_their_keys_and_lead_to_their_tasks(
        self, admin_client: Client
    ) -> None:
        key = issue("acme-bot", tenant="acme").row
        owner = principal_of(key)
        task = make_task("its", owner=owner)
        Task.objects.filter(pk=task.pk).update(tenant="acme")
        make_task("other", owner="jwt:somebody")
        cell = f'href="{LIST}?owner=key%3A{key.prefix}" title="{owner}">acme-bot</a>'
        body = admin_client.get(LIST).text
        assert cell in body
        assert ">acme</span>" in body
        assert cell in admin_client.get(page_of(task)).text
        assert ids_listed(admin_client, f"?owner={owner}") == ["its"]

    def test_are_found_by_the_names_of_their_keys(self, admin_client: Client) -> None:
        make_task("its", owner=principal_of(issue("acme-bot").row))
        make_task("other", owner="alice")
        assert ids_listed(admin_client, "?owner=acme-bot") == ["its"]
        assert ids_listed(admin_client, "?owner=alice") == ["other"]


class TestTheIdThatClientsKnow:
    def test_leads_to_the_page(self, admin_client: Client) -> None:
        task = make_task("7f3c0d52-1c1e-4d0f-9df2-5f0a4f9c2a11")
        for end in ("", "change/"):
            answer = admin_client.get(f"{LIST}{task.public_id}/{end}", follow=True)
            assert answer.redirect_chain[-1][0] == page_of(task)

    def test_leads_to_a_list_if_several_owners_have_chosen_it(self, admin_client: Client) -> None:
        for owner in ("alice", "bob"):
            make_task("mine", owner=owner)
        answer = admin_client.get(f"{LIST}mine/change/", follow=True)
        assert [task.owner for task in answer.context["cl"].result_list] == ["bob", "alice"]

    def test_leads_nowhere_where_there_is_no_such_task(self, admin_client: Client) -> None:
        for name in ("nobody", "%F0%9F%98%80"):
            assert admin_client.get(f"{LIST}{name}/change/").status_code == 404

    def test_says_nothing_to_who_may_not_view(self, sign_in: SignIn) -> None:
        client = sign_in("view_run")
        make_task("mine")
        assert {client.get(f"{LIST}{name}/change/").status_code for name in ("mine", "other")} == {
            403
        }


class TestTheTaskPage:
    def test_shows_messages_status_changes_artifacts_and_runs(self, admin_client: Client) -> None:
        task = make_task("the-task", text="please begin", owner="alice")
        add_status(task, TaskState.WORKING, "at it")
        add_artifact(task, "answer", "forty", "-two")
        add_artifact(task, "later", "one", closed=False)
        add_run(task, RunStatus.FAILED, worker="worker-7", error="Traceback: no such thing")
        body = admin_client.get(page_of(task)).text
        for expected in (
            "please begin",
            "at it",
            "forty-two",
            "2 pieces",
            "growing",
            "worker-7",
            "no such thing",
        ):
            assert expected in body

    def test_says_where_the_log_begins(self, admin_client: Client) -> None:
        task = make_task(state=TaskState.COMPLETED)
        assert "were removed" not in admin_client.get(page_of(task)).text
        Event.objects.filter(task=task, number=1).delete()
        assert "Events before 2 were removed." in admin_client.get(page_of(task)).text
        Event.objects.filter(task=task).delete()
        assert "Events before 3 were removed." in admin_client.get(page_of(task)).text

    def test_has_a_short_link_by_its_id(self, admin_client: Client, sign_in: SignIn) -> None:
        task = make_task("a/b_5F 4")
        short = reverse("admin:task", args=[task.public_id])
        assert short == "/admin/t/a/b_5F%204"
        answer = admin_client.get(short)
        assert (answer.status_code, answer["Location"]) == (302, page_of(task))
        number = make_task("4711")
        assert admin_client.get("/admin/t/4711")["Location"] == page_of(number)
        assert admin_client.get(f"{LIST}4711/change/")["Location"] == page_of(number)
        assert admin_client.get("/admin/t/nothing").status_code == 404
        assert sign_in("view_context").get(short).status_code == 403

    def test_links_to_the_task_whose_id_this_one_took_over(self, admin_client: Client) -> None:
        ended = make_task("an-uuid", state=TaskState.COMPLETED)
        task = make_task("the-task", dialect="v01")
        assert "Took over the id" not in admin_client.get(page_of(task) + "?tab=facts").text
        Task.objects.filter(pk=task.pk).update(predecessor_id=ended.pk)
        body = admin_client.get(page_of(task) + "?tab=facts").text
        assert f'href="{page_of(ended)}"' in body
        assert "an-uuid" in body

    @rows(
        "body",
        [
            "",
            "{",
            "[" * 5000 + "]" * 5000,
            '"\\ud800"',
            '{"parts":[7,{"text":{}}]}',
        ],
        within=rolled_back,
    )
    def test_shows_whatever_is_stored(self, admin_client: Client, body: str) -> None:
        task = make_task(state=TaskState.WORKING)
        add_artifact(task, "answer", "text")
        task.messages.update(body=body)
        Event.objects.filter(task=task, number__gt=1).update(body=body)
        task.artifacts.update(body=body)
        add_step(task, add_run(task), "step", body)
        Task.objects.filter(pk=task.pk).update(memory=body, metadata=body)
        assert admin_client.get(page_of(task)).status_code == 200

    def test_cuts_a_body_of_megabytes(self, admin_client: Client) -> None:
        task = make_task(text="x" * 2_000_000)
        answer = admin_client.get(page_of(task))
        assert len(answer.content) < 100_000
        assert "10000 shown" in answer.text
        assert "too long to show here" in answer.text

    def test_reads_a_slice_of_a_long_log_and_links_to_the_others(
        self, admin_client: Client
    ) -> None:
        task = make_task()
        Event.objects.bulk_create(
            Event(
                task=task, number=number, kind=EventKind.STATUS, state=TaskState.WORKING, body="{}"
            )
            for number in range(2, 502)
        )
        Task.objects.filter(pk=task.pk).update(last_event=501)
        newest = admin_client.get(page_of(task))
        assert [newest.context["window"].first, newest.context["window"].last] == [401, 501]
        assert newest.text.count('class="a2a-entry') == 101
        assert "?from=201#" in newest.text
        oldest = admin_client.get(page_of(task) + "?from=1")
        events = [line.content for line in oldest.context["lines"]]
        assert [events[0].first, events[-1].last, len(events)] == [1, 200, 200]
        assert "?from=201#" in oldest.text

    @rows("asked", ["x", "²", "9" * 30], within=rolled_back)
    def test_forgives_a_wrong_number(self, admin_client: Client, asked: str) -> None:
        task = make_task()
        assert admin_client.get(page_of(task), {"from": asked}).status_code == 200

    def test_lists_files_and_sends_them_to_be_saved(self, admin_client: Client) -> None:
        task = make_task()
        file = kept(task, SCRIPT.encode() * 5000, filename=f"{SCRIPT}.html")
        page = admin_client.get(page_of(task) + "?tab=facts").text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;.html" in page
        sent = admin_client.get(f"{page_of(task).removesuffix('change/')}files/{file}/")
        assert b"".join(cast("Any", sent).streaming_content) == SCRIPT.encode() * 5000
        assert sent["Content-Disposition"].startswith("attachment;")
        assert sent["Content-Type"] == "application/octet-stream"
        assert sent["X-Content-Type-Options"] == "nosniff"

    def test_files_are_for_those_who_may_see_their_task(self, sign_in: SignIn) -> None:
        task, other = make_task(), make_task("task-2")
        file = kept(task, b"x" * 100_000)
        bob = sign_in("view_context")
        assert bob.get(f"/admin/a2a_tasks/task/{task.pk}/files/{file}/").status_code == 404
        assert Client().get(f"/admin/a2a_tasks/task/{task.pk}/files/{file}/").status_code == 302
        User.objects.get().user_permissions.add(Permission.objects.get(codename="view_task"))
        assert bob.get(f"/admin/a2a_tasks/task/{other.pk}/files/{file}/").status_code == 404
        seen = bob.get(f"/admin/a2a_tasks/task/{task.pk}/files/{file}/")
        assert b"".join(cast("Any", seen).streaming_content) == b"x" * 100_000

    def test_never_shows_a_lease_token(self, admin_client: Client) -> None:
        task = make_task()
        run = add_run(task, RunStatus.RUNNING)
        assert run.token
        for page in (page_of(task), reverse("admin:a2a_tasks_run_change", args=[run.pk])):
            assert run.token not in admin_client.get(page).text


class TestPermissions:
    def test_who_may_only_view_cannot_cancel(self, sign_in: SignIn) -> None:
        task, client = make_task(), sign_in("view_task")
        assert "Cancel task" not in client.get(page_of(task)).text
        assert client.post(f"{LIST}{task.pk}/cancel/").status_code == 403
        client.post(LIST, {"action": "cancel_selected", "_selected_action": task.pk})
        task.refresh_from_db()
        assert task.state == TaskState.SUBMITTED


@pytest.mark.django_db
class TestCancelling:
    """The store works on connections of its own, so these rows have to be committed."""

    def test_the_button_cancels_stops_the_run_and_is_logged(self, sign_in: SignIn) -> None:
        task, client = (
            make_task("the-task", state=TaskState.WORKING),
            sign_in("view_task", "change_task"),
        )
        run = add_run(task, RunStatus.RUNNING)
        Task.objects.filter(pk=task.pk).update(run_token=run.token)
        assert 'id="a2a-cancel"' in client.get(page_of(task)).text
        asks = client.post(f"{LIST}{task.pk}/cancel/")
        assert "becomes canceled at once" in asks.text
        assert not LogEntry.objects.exists(), "nothing is done before somebody says yes"
        answer = client.post(f"{LIST}{task.pk}/cancel/", {"confirmed": "yes"}, follow=True)
        assert "The task is canceled." in answer.text
        assert 'id="a2a-cancel"' not in answer.text
        task.refresh_from_db()
        run.refresh_from_db()
        assert [task.state, task.run_token, run.status] == [
            TaskState.CANCELED,
            "",
            RunStatus.CANCELED,
        ]
        entry = LogEntry.objects.get()
        assert [entry.object_id, entry.user.get_username()] == [str(task.pk), "bob"]

    def test_the_button_on_an_ended_or_missing_task_changes_nothing(
        self, admin_client: Client
    ) -> None:
        ended = make_task(state=TaskState.COMPLETED)
        answer = admin_client.post(f"{LIST}{ended.pk}/cancel/", {"confirmed": "yes"}, follow=True)
        assert "Not canceled. " in answer.text
        assert admin_client.post(f"{LIST}{ended.pk + 1}/cancel/").status_code == 404
        assert not LogEntry.objects.exists()

    def test_the_button_says_so_when_the_database_cannot_be_reached(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def unreachable(task: int, *, by: str) -> None:
            raise Overloaded

        monkeypatch.setattr(cancel_task, "cancel_by_key", unreachable)
        url = f"{LIST}{make_task().pk}/cancel/"
        answer = admin_client.post(url, {"confirmed": "yes"}, follow=True)
        assert "Not canceled. " in answer.text
        assert not LogEntry.objects.exists()

    def test_the_button_needs_a_post_and_its_token(self, admin_client: Client) -> None:
        task = make_task()
        assert admin_client.get(f"{LIST}{task.pk}/cancel/").status_code == 405
        strict = Client(enforce_csrf_checks=True)
        strict.cookies = admin_client.cookies
        assert strict.post(f"{LIST}{task.pk}/cancel/").status_code == 403
        task.refresh_from_db()
        assert task.state == TaskState.SUBMITTED
