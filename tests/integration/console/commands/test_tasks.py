"""`manage.py a2a tasks`: which it finds, and how it writes them."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError

from a2a_tasks.models import Message
from a2a_tasks.protocol.values import TaskState
from tests.integration.console.commands import a2a
from tests.support.console.admin.rows import make_task
from tests.support.rows import rolled_back, rows

pytestmark = pytest.mark.django_db


def ids(*words: str) -> list[str]:
    return [
        json.loads(line)["id"] for line in a2a("tasks", "--format", "json", *words).splitlines()
    ]


def populated() -> None:
    """Three tasks."""
    make_task("one", owner="carol", context_id="talk")
    make_task("two", state=TaskState.FAILED, agent="tables")
    task = make_task("three")
    Message.objects.filter(task=task).update(opening="look into the invoice")


@rows(
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
    within=rolled_back,
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
