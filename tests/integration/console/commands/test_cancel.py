"""`manage.py a2a cancel`."""

from __future__ import annotations

import pytest
from django.core.management import CommandError

from a2a_tasks.models import Task
from a2a_tasks.protocol.values import TaskState
from tests.integration.console.commands import a2a
from tests.support.console.admin.rows import make_task
from tests.support.rows import rows

pytestmark = pytest.mark.django_db


def states() -> dict[str, str]:
    rows = Task.objects.values_list("public_id", "state")
    return {name: TaskState(state).word for name, state in rows}


def test_a_task_is_cancelled_by_its_id_or_its_number() -> None:
    make_task("one")
    two = make_task("two")
    assert a2a("cancel", "one", f"#{two.pk}", "--yes") == "Canceled: 2\n"
    assert set(states().values()) == {"canceled"}


def test_one_that_has_ended_is_left_as_it_is() -> None:
    make_task("over", state=TaskState.COMPLETED)
    assert a2a("cancel", "over", "--yes") == "Already ended: 1\n"


def test_filters_mean_those_that_have_not_ended() -> None:
    make_task("one", agent="demo")
    make_task("two", agent="tables")
    make_task("over", agent="demo", state=TaskState.FAILED)
    assert a2a("cancel", "--agent", "demo", "--yes") == "Canceled: 1\n"
    assert states() == {"one": "canceled", "two": "submitted", "over": "failed"}


def test_filters_that_mean_only_ended_ones_do_nothing() -> None:
    make_task("over", state=TaskState.FAILED)
    assert a2a("cancel", "--state", "failed", "--yes") == "Nothing was done.\n"


@rows("words", [(), ("one", "--agent", "demo"), ("--id-prefix", "")])
def test_it_wants_ids_or_filters(words: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match="ids, or filters"):
        a2a("cancel", *words, "--yes")


def test_without_a_yes_nothing_is_done_where_nobody_can_be_asked() -> None:
    make_task("one")
    with pytest.raises(CommandError, match=r"Cancel 1 tasks.* say --yes"):
        a2a("cancel", "one")
    assert states() == {"one": "submitted"}


def test_who_names_one_that_is_not_there_is_told_and_nothing_is_done() -> None:
    make_task("one")
    with pytest.raises(CommandError, match="no task called nothing"):
        a2a("cancel", "one", "nothing", "--yes")
    assert states() == {"one": "submitted"}
