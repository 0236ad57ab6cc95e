"""Log lines in the store: numbered through all attempts, read by run and by task, gone with the task."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from a2a_tasks.models import Run, RunLine, Task
from a2a_tasks.store import run_lines
from a2a_tasks.store.run_lines import RunLogLine
from tests.support.store.world import AT, held

pytestmark = pytest.mark.django_db


def line(
    run: int, text: str = "said", *, attempt: int = 1, seconds: float = 0, **more: Any
) -> RunLogLine:
    about = {"level": 20, "logger": "agents.demo", **more}
    return RunLogLine(run, attempt, AT + datetime.timedelta(seconds=seconds), text=text, **about)


def texts(rows: Any) -> list[str]:
    return [row.text for row in rows]


def test_lines_are_numbered_on_through_all_attempts() -> None:
    run = held().key
    run_lines.write([line(run, "one"), line(run, "two")])
    run_lines.write([line(run, "three", attempt=2)])
    rows = run_lines.of_run(run)
    assert [(row.number, row.attempt, row.text) for row in rows] == [
        (1, 1, "one"),
        (2, 1, "two"),
        (3, 2, "three"),
    ]
    assert texts(run_lines.of_run(run, after=1)) == ["two", "three"]


def test_what_is_too_long_is_cut() -> None:
    run = held().key
    run_lines.write([line(run, "x" * 5000, logger="y" * 500)])
    row = RunLine.objects.get()
    assert (len(row.text), len(row.logger)) == (2000, 128)


def test_lines_of_a_run_that_is_gone_are_dropped_and_the_others_kept() -> None:
    gone, there = held("a").key, held("b").key
    Run.objects.filter(pk=gone).delete()
    run_lines.write([line(gone, "lost"), line(there, "kept")])
    assert texts(RunLine.objects.all()) == ["kept"]


def test_a_task_has_the_lines_of_all_its_runs_by_time() -> None:
    first, other = held("a"), held("b")
    second = Run.objects.create(task_id=first.task, input_number=2, queue="agents", status="queued")
    run_lines.write([line(second.pk, "later", seconds=2), line(first.key, "sooner", seconds=1)])
    run_lines.write([line(other.key, "elsewhere")])
    assert texts(run_lines.of(first.task)) == ["sooner", "later"]


def test_lines_go_with_their_task() -> None:
    run = held()
    run_lines.write([line(run.key)])
    Task.objects.filter(pk=run.task).delete()
    assert not RunLine.objects.exists()


def test_many_lines_of_many_runs_are_three_statements(django_assert_num_queries: Any) -> None:
    runs = [held(f"task-{n}").key for n in range(5)]
    lines = [line(run, str(n)) for run in runs for n in range(20)]
    with django_assert_num_queries(5):  # with the transaction's two
        run_lines.write(lines)
    assert RunLine.objects.count() == 100
