"""Work for people by command: `manage.py a2a waiting`, `answer`, `assign` and `handover`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError
from django.test import Client
from pytest_django import Settings

from a2a_tasks.models import Assignment, AuditEntry, Message, Task
from a2a_tasks.protocol.values import TaskState
from tests.integration.admin.test_waiting_admin import ANSWER, staff, waits, waits_for_a_secret
from tests.integration.console import a2a
from tests.support.admin.rows import make_task

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def elsewhere(settings: Settings) -> None:
    """Nobody runs agents here."""
    settings.A2A_RUNS = "celery"


class TestWaiting:
    def test_it_lists_what_waits_oldest_first_with_who_sees_to_it(self) -> None:
        young = waits("young", minutes=65)  # in hours the seconds since then are not shown
        old = waits("old", minutes=90)
        Assignment.objects.create(task=old, user=staff("carol", ANSWER))
        make_task("over", state=TaskState.COMPLETED)
        lines = a2a("waiting").splitlines()
        assert lines == [
            f"#{old.pk}  old  demo  input-required  1 h 30 min  carol",
            f"#{young.pk}  young  demo  input-required  1 h 5 min  -",
        ]

    def test_it_is_narrowed(self) -> None:
        Assignment.objects.create(task=waits("mine"), user=staff("carol", ANSWER))
        waits("free", state=TaskState.AUTH_REQUIRED, agent="tables")
        for words, name in {
            ("--user", "carol"): "mine",
            ("--free",): "free",
            ("--agent", "tables"): "free",
            ("--kind", "answer"): "mine",
            ("--limit", "1"): "mine",
        }.items():
            (line,) = a2a("waiting", *words).splitlines()
            assert name in line


class TestAnswer:
    def test_the_task_goes_on_with_what_was_said(self, tmp_path: Path) -> None:
        task, path = waits(), tmp_path / "a.txt"
        path.write_text("file")
        words = ("blue", "--data", "[1]", "--file", path, "--event", task.last_event)
        assert a2a("answer", f"#{task.pk}", *words) == "task-1  working\n"
        parts = json.loads(Message.objects.latest("number").body)["parts"]
        assert [next(iter(part)) for part in parts] == ["text", "data", "raw"]
        assert parts[2]["mediaType"] == "text/plain"
        assert AuditEntry.objects.get(action="task.answer").actor == "system:host"

    @pytest.mark.parametrize(
        ("words", "told"),
        [
            (("blue", "--event", 1), "asks something else now"),
            (("",), "nothing to send"),
            (("x", "--data", "{"), "is not JSON"),
            (("x", "--file", "/nowhere/at/all"), "No such file"),
        ],
    )
    def test_what_cannot_be_sent_is_told(self, words: tuple[object, ...], told: str) -> None:
        task = waits()
        with pytest.raises(CommandError, match=told):
            a2a("answer", task.pk, *words)
        assert Task.objects.get().state == TaskState.INPUT_REQUIRED

    @pytest.mark.parametrize("name", ["x", "#", "0"])
    def test_what_is_no_task_is_told(self, name: str) -> None:
        with pytest.raises(CommandError, match=r"not a number|not found"):
            a2a("answer", name, "x")


class TestAssign:
    def test_tasks_are_given_to_somebody_and_released(self) -> None:
        carol, task = staff("carol", ANSWER), waits()
        assert a2a("assign", task.pk, "--to", "carol") == f"{task.pk}  given to carol\n"
        assert Assignment.objects.get().user == carol
        assert a2a("assign", task.pk, "--release") == f"{task.pk}  released\n"
        assert not Assignment.objects.exists()

    def test_those_that_could_not_be_given_away_are_counted(self) -> None:
        User.objects.create_user("eve")
        with pytest.raises(CommandError, match="Not done: 2"):
            a2a("assign", waits().pk, "x", "--to", "eve")
        assert not Assignment.objects.exists()


class TestHandover:
    def test_a_link_is_made(self) -> None:
        task = waits_for_a_secret()
        line = a2a("handover", task.pk)
        found = re.fullmatch(r"(/handover/[\w-]{43})  until \S+ \S+ UTC\n", line)
        assert found
        assert Client().get(found[1]).status_code == 200

    def test_a_task_that_asks_for_nothing_gets_none(self) -> None:
        with pytest.raises(CommandError, match="does not wait for a secret"):
            a2a("handover", waits().pk)
        with pytest.raises(CommandError, match="not a number"):
            a2a("handover", "x")
