"""`manage.py a2a tasks`, `show` and `export`: what they write."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError

from a2a_tasks.models import AuditEntry, Message
from a2a_tasks.protocol.values import TaskState
from tests.integration.console import a2a
from tests.support.admin.rows import add_run, make_task

pytestmark = pytest.mark.django_db


def ids(*words: str) -> list[str]:
    """The ids of the tasks that are listed."""
    return [
        json.loads(line)["id"] for line in a2a("tasks", "--format", "json", *words).splitlines()
    ]


def populated() -> None:
    """Three tasks."""
    make_task("one", owner="carol", context_id="talk")
    make_task("two", state=TaskState.FAILED, agent="tables")
    task = make_task("three")
    Message.objects.filter(task=task).update(opening="look into the invoice")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([], ["three", "two", "one"]),
        (["--state", "failed"], ["two"]),
        (["--state", "failed", "--state", "unfinished"], ["three", "two", "one"]),
        (["--owner", "carol"], ["one"]),
        (["--agent", "tables"], ["two"]),
        (["--context", "talk"], ["one"]),
        (["--id-prefix", "t"], ["three", "two"]),
        (["--text", "INVOI into"], ["three"]),
        (["--since", "2100-01-01"], []),
        (["--mark", "webhooks"], []),
        (["invoice"], ["three"]),
        (["talk"], ["one"]),
        (["--lines", "1"], ["three"]),
    ],
)
def test_tasks_are_listed_by_what_is_known_of_them(words: list[str], found: list[str]) -> None:
    populated()
    assert ids(*words) == found


def test_a_table_has_a_line_of_each_without_what_a_terminal_would_obey() -> None:
    make_task("one\x1b[2J")
    heading, line = a2a("tasks").splitlines()
    assert heading.split() == ["id", "state", "agent", "owner", "created_at", "opening"]
    assert line.startswith("one\ufffd[2J ")


def test_a_wrong_state_is_refused_in_words() -> None:
    with pytest.raises(CommandError, match="'nonsense' is none of: submitted"):
        a2a("tasks", "--state", "nonsense")


def test_a_task_is_shown_with_what_was_said_and_its_runs() -> None:
    task = make_task("one", text="hello")
    run = add_run(task, worker="worker-7", error="boom")
    shown: dict[str, Any] = json.loads(a2a("show", "one"))
    assert (shown["id"], shown["state"], shown["key"]) == ("one", "submitted", task.pk)
    assert shown["task"]["history"][0]["parts"] == [{"text": "hello"}]
    assert [(one["id"], one["worker"], one["error"]) for one in shown["runs"]] == [
        (run.pk, "worker-7", "boom")
    ]


def test_a_task_that_is_not_there_is_not_shown() -> None:
    with pytest.raises(CommandError, match="no task called nothing"):
        a2a("show", "nothing")


@pytest.mark.django_db(transaction=True)
def test_an_export_has_every_task_and_is_written_down(tmp_path: Path) -> None:
    populated()
    file = tmp_path / "tasks.csv"
    a2a("export", "--to", file, "--state", "unfinished")
    rows = list(csv.DictReader(io.StringIO(file.read_text())))
    assert [row["id"] for row in rows] == ["three", "one"]
    assert file.stat().st_mode & 0o777 == 0o600
    entry = AuditEntry.objects.get(action="task.export")
    assert "submitted" in entry.detail
