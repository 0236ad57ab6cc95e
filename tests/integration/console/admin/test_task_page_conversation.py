"""The conversation of a context: what was said in its tasks, in order, in bounded pages."""

from __future__ import annotations

import json

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from a2a_console.admin.tasks import conversation
from a2a_tasks.models import Artifact, Event, Message, Task
from a2a_tasks.protocol.lifecycle import EventKind
from a2a_tasks.protocol.values import Role, TaskState
from tests.support.console.admin.rows import add_artifact, add_status, make_task, said
from tests.support.rows import rolled_back, rows

pytestmark = pytest.mark.django_db


def url(task: Task) -> str:
    return f"/admin/a2a_tasks/context/{task.context_id}/conversation/"


def say(task: Task, text: str, role: Role = Role.USER) -> None:
    """One message more in a task."""
    task.last_event += 1
    task.save()
    kind = EventKind.INPUT if role is Role.USER else EventKind.MESSAGE
    Event.objects.create(task=task, number=task.last_event, kind=kind)
    body = json.dumps(said(text, role))
    Message.objects.create(task=task, number=task.last_event, role=role, body=body)


def stand(task: Task, state: TaskState, text: str) -> None:
    """A change of state with words, which the task stands with."""
    add_status(task, state, text)
    body = json.dumps(said(text, Role.AGENT))
    Task.objects.filter(pk=task.pk).update(status_message=body, status_at=timezone.now())


def in_order(body: str, *words: str) -> bool:
    """Do the words stand there one after the other, once each?"""
    return sorted(words, key=body.index) == list(words) and all(body.count(w) == 1 for w in words)


class TestTheConversation:
    def test_has_messages_questions_results_and_last_words_task_after_task(
        self, admin_client: Client
    ) -> None:
        first = make_task("task-a", text="client-asks")
        add_status(first, TaskState.WORKING, "of-progress")
        add_status(first, TaskState.INPUT_REQUIRED, "agent-asks-back")
        say(first, "client-answers")
        say(first, "agent-speaks", Role.AGENT)
        add_artifact(first, "the-result", "forty", "-two")
        stand(first, TaskState.COMPLETED, "agent-is-done")
        second = make_task("task-b", text="client-goes-on")
        stand(second, TaskState.INPUT_REQUIRED, "agent-waits")
        body = admin_client.get(url(first)).text
        assert in_order(
            body,
            *("client-asks", "agent-asks-back", "client-answers", "agent-speaks", "the-result"),
            *("forty-two", "agent-is-done", "client-goes-on", "agent-waits"),
        )
        assert "of-progress" not in body
        for task in (first, second):
            assert f'href="/admin/a2a_tasks/task/{task.pk}/change/"' in body

    def test_has_a_question_once_that_is_in_the_history(self, admin_client: Client) -> None:
        task = make_task("task-a", text="client-asks")
        add_status(task, TaskState.INPUT_REQUIRED, "agent-asks-back")
        body = json.dumps(said("agent-asks-back", Role.AGENT))
        Message.objects.create(task=task, number=task.last_event, role=Role.AGENT, body=body)
        say(task, "client-answers")
        page = admin_client.get(url(task)).text
        assert in_order(page, "client-asks", "agent-asks-back", "client-answers")

    def test_is_linked_to_from_the_context_and_the_task(self, admin_client: Client) -> None:
        task = make_task()
        for page in (
            f"/admin/a2a_tasks/context/{task.context_id}/change/",
            f"/admin/a2a_tasks/task/{task.pk}/change/",
        ):
            assert url(task) in admin_client.get(page).text

    def test_is_read_back_from_its_end_without_gaps(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(conversation, "MESSAGES", 4)
        tasks = [make_task(f"task-{name}", text=f"said-{name}-0") for name in "abc"]
        for task, name in zip(tasks, "abc", strict=True):
            for number in range(1, 3):
                say(task, f"said-{name}-{number}")
        found: list[str] = []
        query = ""
        for _ in range(3):
            answer = admin_client.get(url(tasks[0]) + query)
            shown = answer.context["conversation"]
            texts = [one.parts[0].text for chapter in shown.chapters for one in chapter.said]
            found = texts + found
            query = f"?before={shown.earlier}"
        assert shown.earlier == ""
        assert found == [f"said-{name}-{number}" for name in "abc" for number in range(3)]

    def test_results_of_a_task_are_on_the_page_with_its_last_message(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(conversation, "MESSAGES", 2)
        task = make_task(text="said-0")
        say(task, "said-1")
        say(task, "said-2")
        add_artifact(task, "the-result", "x")
        last = admin_client.get(url(task))
        assert "the-result" in last.text
        earlier = last.context["conversation"].earlier
        assert "the-result" not in admin_client.get(url(task), {"before": earlier}).text

    @rows("before", ["x", ".", "1.2.3", "9" * 30 + ".1"], within=rolled_back)
    def test_forgives_a_wrong_place(self, admin_client: Client, before: str) -> None:
        task = make_task(text="said")
        assert "said" in admin_client.get(url(task), {"before": before}).text

    def test_shows_pictures_and_says_what_is_too_long(self, admin_client: Client) -> None:
        task = make_task()
        picture = {"raw": "A" * 50_000, "mediaType": "image/png"}
        Message.objects.filter(task=task).update(body=json.dumps({"parts": [picture]}))
        say(task, "x" * 1_000_000)
        add_artifact(task, "growing", "once <b>upon", " a time", closed=False)
        body = admin_client.get(url(task)).text
        assert f"/admin/a2a_tasks/task/{task.pk}/parts/event/1/0/" in body
        assert body.count("too long for here, or still growing") == 1
        assert "once &lt;b&gt;upon a time" in body
        assert "artifact, growing" in body

    @rows("body", ["", "{", "7", "[" * 5000, '{"parts":7}'], within=rolled_back)
    def test_shows_whatever_is_stored(self, admin_client: Client, body: str) -> None:
        task = make_task()
        add_status(task, TaskState.INPUT_REQUIRED, "x")
        say(task, "y")
        add_artifact(task, "z", "z")
        Message.objects.filter(task=task).update(body=body)
        Event.objects.filter(task=task).update(body=body)
        Artifact.objects.filter(task=task).update(body=body)
        Task.objects.filter(pk=task.pk).update(status_message=body)
        assert admin_client.get(url(task)).status_code == 200

    def test_asks_no_more_of_a_long_one(self, admin_client: Client) -> None:
        counts = []
        for context, tasks in (("short", 1), ("long", 10)):
            for number in range(tasks):
                task = make_task(f"{context}-{number}", context_id=context, text="x" * 20_000)
                add_status(task, TaskState.INPUT_REQUIRED, "which?")
                say(task, "that")
                add_artifact(task, "result", "x" * 20_000)
                stand(task, TaskState.COMPLETED, "done")
            with CaptureQueriesContext(connection) as asked:
                admin_client.get(url(task))
            counts.append(len(asked))
        assert counts[0] == counts[1] <= 14

    def test_says_that_it_looks_at_the_newest_tasks_alone(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(conversation, "TASKS", 2)
        for name in "abc":
            task = make_task(f"task-{name}", text=f"said-{name}")
        body = admin_client.get(url(task)).text
        assert "said-a" not in body
        assert "said-c" in body
        assert "tasks that changed last" in body
