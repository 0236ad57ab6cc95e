"""Work for people by the management API: listed, given to somebody, answered, and a link made."""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.utils import timezone
from pytest_django import Settings

from a2a_console.api.waiting import WaitingLineSerializer
from a2a_tasks.models import Assignment, HandedSecret, Message, Task
from a2a_tasks.protocol.values import TaskState
from tests.support.console.admin.rows import make_task, said
from tests.support.console.api.world import asked, key_of
from tests.support.rows import rolled_back, rows

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def elsewhere(settings: Settings) -> None:
    """Nobody runs agents here."""
    settings.A2A_RUNS = "celery"


@pytest.fixture
def key() -> str:
    return key_of("admin:read", "admin:write")


def waits(name: str = "task-1", *, minutes: int = 5, **about: Any) -> Task:
    """A task that has been waiting for so long."""
    task = make_task(name, state=about.pop("state", TaskState.INPUT_REQUIRED), **about)
    at = timezone.now() - timedelta(minutes=minutes)
    message = json.dumps(said("Which colour?"))
    Task.objects.filter(pk=task.pk).update(status_at=at, status_message=message)
    task.refresh_from_db()
    return task


def helper(name: str = "carol") -> User:
    user = User.objects.create_user(name, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="answer_task"))
    return user


class TestListing:
    def test_the_oldest_come_first_with_what_they_ask_and_whose_they_are(self, key: str) -> None:
        waits("young", minutes=1)
        old = waits("old", state=TaskState.AUTH_REQUIRED)
        Assignment.objects.create(task=old, user=helper())
        HandedSecret.objects.create(
            task=old, names='["token"]', asked_in=1, expires_at=timezone.now()
        )
        Message.objects.filter(task=old, number=1).update(opening="Paint it.")
        make_task("over", state=TaskState.COMPLETED)
        first, second = asked(key, "/waiting").json["items"]
        assert (first["id"], second["id"]) == ("old", "young")
        assert (first["assigned_to"], first["hand_over"]) == ("carol", ["token"])
        assert (second["assigned_to"], second["hand_over"]) == (None, [])
        assert first["asked"]["parts"] == [{"text": "Which colour?"}]
        assert (first["opening"], second["opening"]) == ("Paint it.", "")
        assert set(first) == set(WaitingLineSerializer().fields)

    def test_pages_follow_each_other(self, key: str) -> None:
        for number in range(5):
            waits(f"task-{number}", minutes=9 - number)
        seen, cursor = [], ""
        while cursor is not None:
            more = f"&cursor={cursor}" if cursor else ""
            page = asked(key, f"/waiting?size=2{more}").json
            seen += [line["id"] for line in page["items"]]
            cursor = page["next"]
        assert seen == [f"task-{number}" for number in range(5)]
        assert asked(key, "/waiting?cursor=x").code == "invalid"

    def test_it_is_narrowed(self, key: str) -> None:
        mine = waits("mine")
        waits("free", state=TaskState.AUTH_REQUIRED, agent="tables")
        Assignment.objects.create(task=mine, user=helper())
        for query, ids in {
            "assigned_to=carol": ["mine"],
            "assigned_to=": ["free"],
            "kind=answer": ["mine"],
            "agent=tables": ["free"],
        }.items():
            items = asked(key, f"/waiting?{query}").json["items"]
            assert [line["id"] for line in items] == ids


class TestAnswering:
    def test_the_task_goes_on_with_what_was_said(self, key: str) -> None:
        task = waits()
        sent = base64.b64encode(b"file").decode()
        file = {"filename": "a.txt", "media_type": "text/plain", "content": sent}
        body = {"text": "blue", "data": {"n": [1]}, "files": [file], "event": task.last_event}
        answer = asked(key, f"/tasks/{task.pk}/answer", body, post=True)
        assert (answer.status, answer.json["state"]) == (200, "working")
        parts = json.loads(Message.objects.latest("number").body)["parts"]
        assert parts[:2] == [{"text": "blue"}, {"data": {"n": [1]}}]
        assert parts[2]["raw"] == sent
        again = asked(key, f"/tasks/{task.pk}/answer", body, post=True)
        assert (again.status, again.code) == (409, "conflict")
        assert "does not wait" in again.json["detail"]

    @rows(
        ("body", "status"),
        [
            ({}, 400),
            ({"text": ""}, 400),
            ({"text": "x", "event": 1}, 409),
            ({"files": [{"filename": "a", "media_type": "text/plain", "content": "%"}]}, 400),
            ({"files": [{"filename": "a"}]}, 400),
            ({"words": "x"}, 400),
        ],
        within=rolled_back,
    )
    def test_what_cannot_be_sent_is_said(self, body: Any, status: int, key: str) -> None:
        task = waits()
        answer = asked(key, f"/tasks/{task.pk}/answer", body, post=True)
        assert answer.status == status, answer.body
        assert Task.objects.get().state == TaskState.INPUT_REQUIRED

    def test_what_is_wrong_with_a_file_is_told_by_its_path(self, key: str) -> None:
        right = {"filename": "a", "media_type": "text/plain", "content": "AAAA"}
        body = {"files": [right, {"filename": "b", "content": "AAAA"}]}
        answer = asked(key, f"/tasks/{waits().pk}/answer", body, post=True)
        (mistake,) = answer.json["errors"]
        assert (mistake["where"], mistake["name"]) == ("body", "files.1.media_type")
        assert mistake["detail"] == "This field is required."

    def test_a_media_type_that_the_agent_does_not_take_is_said(self, key: str) -> None:
        task = waits(agent="tables")
        file = {"filename": "a.png", "media_type": "image/png", "content": "AAAA"}
        answer = asked(key, f"/tasks/{task.pk}/answer", {"files": [file]}, post=True)
        assert (answer.status, answer.code) == (400, "invalid")
        assert "image/png" in answer.json["errors"][0]["detail"]

    def test_an_agent_that_is_off_is_a_conflict(self, key: str, settings: Settings) -> None:
        settings.A2A_DISABLED_AGENTS = "demo"
        answer = asked(key, f"/tasks/{waits().pk}/answer", {"text": "x"}, post=True)
        assert (answer.status, "switched off" in answer.json["detail"]) == (409, True)


class TestGiving:
    def test_to_somebody_and_to_nobody(self, key: str) -> None:
        task, carol = waits(), helper()
        at = f"/tasks/{task.pk}/assign"
        assert asked(key, at, {"to": "carol"}, post=True).status == 200
        assert Assignment.objects.get().user == carol
        assert asked(key, at, {"to": None}, post=True).status == 200
        assert not Assignment.objects.exists()

    def test_who_may_not_have_it_is_named(self, key: str) -> None:
        User.objects.create_user("eve", is_staff=True)
        answer = asked(key, f"/tasks/{waits().pk}/assign", {"to": "eve"}, post=True)
        assert (answer.status, answer.json["errors"][0]["name"]) == (400, "to")

    def test_a_task_that_does_not_wait_is_a_conflict(self, key: str) -> None:
        helper()
        task = make_task("over", state=TaskState.COMPLETED)
        assert asked(key, f"/tasks/{task.pk}/assign", {"to": "carol"}, post=True).status == 409


class TestLinks:
    def test_a_link_is_made_for_a_task_that_waits_for_a_secret_and_no_other(self, key: str) -> None:
        task = waits(state=TaskState.AUTH_REQUIRED)
        at = f"/tasks/{task.pk}/handover"
        assert asked(key, at, post=True).status == 409
        HandedSecret.objects.create(
            task=task, names='["token"]', asked_in=1, expires_at=timezone.now()
        )
        made = asked(key, at, post=True).json
        assert made["url"].startswith("/handover/")
        assert made["expires_at"] > timezone.now().isoformat()
        assert HandedSecret.objects.get().token_hash
