"""Doing something to many tasks in the admin, and exporting them: what is asked first, and what is done."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import AsyncClient, Client
from django.utils import timezone

from a2a_console.admin.tasks import task_admin
from a2a_console.bulk import jobs
from a2a_console.bulk.jobs import list_results, work
from a2a_console.search import stuck_tasks
from a2a_tasks.models import AuditEntry, BulkJob, BulkState, Message, Run, Task
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.db import run_in_thread
from tests.support.console.admin.people import SignIn
from tests.support.console.admin.rows import add_run, make_task
from tests.support.store.world import accepted

pytestmark = pytest.mark.django_db

LIST, JOBS = "/admin/a2a_tasks/task/", "/admin/a2a_tasks/bulkjob/"


def ended(name: str, state: TaskState = TaskState.FAILED, **about: Any) -> Task:
    task = make_task(name, state=state, **about)
    add_run(task)
    return task


def asks(client: Client, action: str, *tasks: Task, query: str = "", **more: Any) -> Any:
    chosen = [task.pk for task in tasks]
    return client.post(LIST + query, {"action": action, "_selected_action": chosen, **more})


def says_yes(client: Client, page: Any, deed: str) -> Any:
    context = page.context
    said = {"choice": context["choice"], "nonce": context["plan"].nonce, "query": context["query"]}
    return client.post(f"{LIST}bulk/{deed}/", said, follow=True)


class TestThePageThatAsks:
    def test_counts_by_state_and_agent_and_says_what_cannot_be_undone(
        self, admin_client: Client
    ) -> None:
        tasks = [
            ended("one"),
            ended("two"),
            ended("three", TaskState.COMPLETED, agent="tables"),
            make_task("four"),
        ]
        page = asks(admin_client, "run_again_selected", *tasks)
        assert page.context["plan"].parts == [("failed", "demo", 2), ("completed", "tables", 1)]
        for words in (
            "may repeat",
            "Webhooks are not copied",
            "1 selected task cannot be run again",
        ):
            assert words in page.text
        assert Task.objects.count() == 4, "nothing is done yet"

    def test_does_not_come_where_there_is_nothing_to_do(self, admin_client: Client) -> None:
        answer = asks(admin_client, "cancel_selected", ended("one"))
        assert answer.status_code == 302
        assert "cannot be canceled: they have already finished" in admin_client.get(LIST).text

    def test_is_about_everything_the_list_is_about_if_asked_so(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(admin.site.get_model_admin(Task), "list_per_page", 5)
        for number in range(7):
            make_task(f"t-{number}", owner="carol")
        other = make_task("other")
        page = asks(
            admin_client,
            "cancel_selected",
            other,
            query="?owner=carol&before=1000000",
            select_across="1",
        )
        assert len(page.context["plan"].keys) == 7
        says_yes(admin_client, page, "cancel")
        later = make_task("later", owner="carol")
        work()
        left = Task.objects.exclude(state=TaskState.CANCELED).order_by("pk")
        assert list(left) == [other, later]

    def test_counts_up_to_a_bound_and_says_so(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(task_admin, "COUNTED", 2)
        tasks = [make_task(f"t-{number}") for number in range(3)]
        page = asks(admin_client, "cancel_selected", *tasks, select_across="1")
        assert "Cancel (2+ tasks)" in page.text
        says_yes(admin_client, page, "cancel")
        work()
        assert not Task.objects.exclude(state=TaskState.CANCELED).exists()

    def test_is_about_all_stuck_tasks_although_few_are_found_at_once(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for module in (task_admin, stuck_tasks):
            monkeypatch.setattr(module, "MAX_COUNT", 2)
        monkeypatch.setattr(jobs, "SLICE", 1)
        tasks = [accepted(f"stuck-{number}").task for number in range(5)]
        long_ago = timezone.now() - timedelta(hours=1)
        Run.objects.filter(task__in=tasks).update(queue="crawl", due_at=long_ago)
        query = "?stuck=no-worker"
        some = Task.objects.filter(pk__in=tasks[-2:])
        page = asks(admin_client, "cancel_selected", *some, query=query, select_across="1")
        assert "Cancel (2+ tasks)" in page.text
        says_yes(admin_client, page, "cancel")
        work()
        assert not Task.objects.exclude(state=TaskState.CANCELED).exists()


class TestAJob:
    def test_of_another_release_says_why_it_waits_and_can_be_stopped(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(jobs, "_strange", set())
        says_yes(admin_client, asks(admin_client, "cancel_selected", make_task("one")), "cancel")
        BulkJob.objects.update(action="paint")
        job = BulkJob.objects.get()
        work()
        assert f"paint #{job.pk}" in admin_client.get(JOBS).text
        for page in ("change", "progress"):
            shown = admin_client.get(f"{JOBS}{job.pk}/{page}/").text
            assert "It waits: this release does not know the action &#x27;paint&#x27;." in shown
        admin_client.post(f"{JOBS}{job.pk}/stop/")
        job.refresh_from_db()
        assert job.state == BulkState.STOPPED
        assert "It waits" not in admin_client.get(f"{JOBS}{job.pk}/progress/").text

    def test_shows_how_far_it_is_and_its_results(self, admin_client: Client) -> None:
        tasks = [make_task("=one"), make_task("two")]
        shown = says_yes(admin_client, asks(admin_client, "cancel_selected", *tasks), "cancel")
        job = BulkJob.objects.get()
        assert shown.redirect_chain[-1][0] == f"{JOBS}{job.pk}/change/"
        assert "0 of 2 tasks" in shown.text
        assert "Stop the job" in shown.text
        Task.objects.filter(pk=tasks[1].pk).update(state=TaskState.COMPLETED)
        work()
        shown = admin_client.get(f"{JOBS}{job.pk}/progress/").text
        assert "1 of 2 tasks" in shown
        assert "hx-get" not in shown, "it has ended"
        listed = admin_client.get(JOBS)
        assert "Cancel #" in listed.text
        entry = AuditEntry.objects.get(action="bulk.begin")
        assert (entry.actor, entry.object) == (f"staff:{User.objects.get().pk}", str(job.pk))
        assert AuditEntry.objects.get(action="task.cancel").actor == entry.actor
        assert list(list_results(job))[1] == f"{tasks[0].pk},'=one,True,canceled\r\n"

    def test_is_a_line_for_other_pages_until_it_ends(
        self, admin_client: Client, sign_in: SignIn
    ) -> None:
        asked = asks(admin_client, "cancel_selected", make_task())
        own = says_yes(admin_client, asked, "cancel")
        job = BulkJob.objects.get()
        toast = f"{JOBS}{job.pk}/progress/?toast"
        assert f'data-toast="{toast}"' in own.text
        line = admin_client.get(toast).text
        assert f"Cancel #{job.pk}: 0 of 1 tasks" in line
        assert "data-open" in line
        work()
        line = admin_client.get(toast).text
        assert "1 of 1 tasks · ended" in line
        assert "data-open" not in line
        assert "a2a-toast" not in sign_in("view_task").get(toast, follow=True).text

    def test_stops_when_a_user_says_so(self, admin_client: Client) -> None:
        says_yes(admin_client, asks(admin_client, "cancel_selected", make_task()), "cancel")
        job = BulkJob.objects.get()
        answer = admin_client.post(f"{JOBS}{job.pk}/stop/", follow=True)
        assert "The job stops." in answer.text
        work()
        assert Task.objects.get().state == TaskState.SUBMITTED
        assert "already ended" in admin_client.post(f"{JOBS}{job.pk}/stop/", follow=True).text
        assert AuditEntry.objects.filter(action="bulk.stop").count() == 1

    def test_is_not_there_for_other_staff(self, admin_client: Client, sign_in: SignIn) -> None:
        says_yes(admin_client, asks(admin_client, "cancel_selected", make_task()), "cancel")
        job = BulkJob.objects.get()
        client = sign_in("view_task", "change_task")
        assert f"/{job.pk}/change/" not in client.get(JOBS).text
        for page in ("change", "progress", "results"):
            assert client.get(f"{JOBS}{job.pk}/{page}/").status_code == 404
        assert client.post(f"{JOBS}{job.pk}/stop/").status_code == 404

    @pytest.mark.parametrize("choice", ["", "{", '{"selection":{},"keys":["x"]}', "[1]"])
    def test_refuses_a_choice_that_cannot_be_read(self, admin_client: Client, choice: str) -> None:
        assert admin_client.post(f"{LIST}bulk/cancel/", {"choice": choice}).status_code == 400
        assert not BulkJob.objects.exists()


class TestRunningAgain:
    def test_is_done_once_for_one_click(self, admin_client: Client) -> None:
        page = asks(admin_client, "run_again_selected", ended("one"), query="?state=failed")
        for _ in range(2):
            answer = says_yes(admin_client, page, "run-again")
            assert "?state=failed" in answer.text, "the way back to the list"
            work()
        assert BulkJob.objects.count() == 1
        assert Task.objects.count() == 2
        entry = AuditEntry.objects.get(action="task.run_again")
        assert (entry.actor, entry.object) == (f"staff:{User.objects.get().pk}", "one")

    def test_links_the_old_task_and_the_new_one_with_each_other(self, admin_client: Client) -> None:
        old = ended("one")
        says_yes(admin_client, asks(admin_client, "run_again_selected", old), "run-again")
        work()
        new = Task.objects.exclude(pk=old.pk).get()
        for task, words, other in ((old, "Run again as", new), (new, "Refers to", old)):
            answer = admin_client.get(f"{LIST}{task.pk}/change/?tab=facts")
            link = f'<a class="a2a-id" href="{LIST}{other.public_id}/change/">{other.public_id}</a>'
            assert f"<dt>{words}</dt><dd>{link}</dd>" in answer.text


class TestAnExport:
    async def asked(self, url: str) -> Any:
        """What an operator is sent."""
        client = AsyncClient()
        user = await run_in_thread(User.objects.create_superuser, "root")
        await client.aforce_login(user)
        return await client.post(url)

    async def text_of(self, url: str) -> str:
        answer = await self.asked(url)
        assert answer.status_code == 200
        return b"".join([piece async for piece in answer.streaming_content]).decode()

    @pytest.mark.django_db(transaction=True)
    async def test_has_everything_the_list_is_about_on_all_its_pages(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(admin.site.get_model_admin(Task), "list_per_page", 5)

        def make() -> None:
            for number in range(7):
                make_task(f"t-{number}", owner="carol")
            make_task("other")
            Message.objects.update(opening="=1+1")

        await run_in_thread(make)
        text = await self.text_of(f"{LIST}export.csv?owner=carol&before=3")
        rows = list(csv.DictReader(io.StringIO(text)))
        assert len(rows) == 7
        assert {row["opening"] for row in rows} == {"'=1+1"}
        entry = await run_in_thread(AuditEntry.objects.get, action="task.export")
        assert (entry.object, "carol" in entry.detail) == ("carol", False), "an erasure finds it"

    @pytest.mark.django_db(transaction=True)
    async def test_may_be_json_an_object_a_line(self) -> None:
        await run_in_thread(make_task, "one")
        text = await self.text_of(f"{LIST}export.jsonl")
        assert [json.loads(line)["id"] for line in text.splitlines()] == ["one"]

    def test_has_no_other_form(self, admin_client: Client) -> None:
        assert admin_client.post(f"{LIST}export.xlsx").status_code == 404

    def test_is_a_post_for_who_may_view(self, sign_in: SignIn) -> None:
        client = sign_in("view_run")
        assert client.post(f"{LIST}export.csv").status_code == 403
        assert client.get(f"{LIST}export.csv").status_code == 405
