"""What took the time of a task: every span has its kind, its times, and how it ended."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from a2a_console.diagnosis.spans import Kind, Span, read_spans
from a2a_tasks.models import Event, Run, RunStatus, Task
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import run_lines, segments
from tests.integration.console.diagnosis.test_call_tree import make_call
from tests.support.console.admin.rows import add_run, add_status, add_step, add_usage, make_task
from tests.support.push.rows import add_attempt, make_config, make_delivery

pytestmark = pytest.mark.django_db
NOW = timezone.now().replace(microsecond=0)


def at(seconds: float) -> datetime:
    """So many seconds after the task began."""
    return NOW + timedelta(seconds=seconds)


def read(task: Task, *kinds: Kind) -> list[Span]:
    """The spans of these kinds, or all."""
    found = read_spans(task, shows_runs=True, shows_faults=True, shows_webhooks=True)
    return [span for span in found if not kinds or span.kind in kinds]


def run_of(task: Task, status: RunStatus = RunStatus.ENDED, **columns: object) -> Run:
    """A run that was accepted at the beginning."""
    run = add_run(task, status, worker="b", **columns)
    Run.objects.filter(pk=run.pk).update(created_at=at(0))
    return run


def test_a_wait_a_crash_and_a_retry_are_three_attempts_that_add_up_to_the_duration() -> None:
    task, begun = make_task(state=TaskState.COMPLETED), NOW.timestamp()
    past = [
        [1, "a", begun + 1, begun + 3, segments.PARKED, "the bank"],
        [1, "a", begun + 13, begun + 15, segments.DIED, ""],
    ]
    run_of(task, past=past, attempt=2, started_at=at(16), ended_at=at(20))
    spans = read(task)
    assert [(span.kind, span.note) for span in spans] == [
        (Kind.QUEUE, ""),
        (Kind.ATTEMPT, "parked in the bank"),
        (Kind.WAIT, ""),
        (Kind.ATTEMPT, "died"),
        (Kind.QUEUE, ""),
        (Kind.ATTEMPT, "ended"),
    ]
    assert [span.label for span in spans if span.kind is Kind.WAIT] == ["the bank"]
    assert [span.is_fault for span in spans if span.kind is Kind.ATTEMPT] == [False, True, False]
    ends = [at(0), *(span.ended for span in spans)]
    assert [span.began for span in spans] == ends[:-1], "no time is missing, or counted twice"
    assert ends[-1] == at(20)


@pytest.mark.parametrize("status", [RunStatus.QUEUED, RunStatus.RUNNING])
def test_what_is_under_way_has_no_end(status: RunStatus) -> None:
    task = make_task()
    run_of(task, status)
    assert read(task)[-1].ended is None


def test_a_parked_run_that_is_cancelled_waited_until_then() -> None:
    task, begun = make_task(), NOW.timestamp()
    past = [[1, "a", begun + 1, begun + 3, segments.PARKED, "the bank"]]
    run_of(task, RunStatus.CANCELED, past=past, started_at=at(1), ended_at=at(9))
    [*_, wait] = read(task)
    assert (wait.kind, wait.began, wait.ended) == (Kind.WAIT, at(3), at(9))


def test_a_run_that_was_parked_before_its_first_step_waited_for_a_budget() -> None:
    task, begun = make_task(), NOW.timestamp()
    run_of(task, RunStatus.QUEUED, past=[[1, "a", begun, begun + 1, segments.PARKED, ""]])
    wait = read(task)[-1]
    assert (wait.kind, wait.label, wait.ended) == (Kind.WAIT, "budget", None)


def test_steps_are_tools_models_or_steps_and_those_of_models_tell_their_usage() -> None:
    task = make_task()
    run = run_of(task, started_at=at(0), ended_at=at(9))
    for n, name in enumerate(("ocr", "tool:search:call-1", "agent/model#2")):
        step = add_step(task, run, name)
        type(step).objects.filter(name=name).update(created_at=at(n + 1), seconds=0.5)
    add_usage(task, "m", run=run.pk, step="agent/model#2", input_tokens=1200, output_tokens=7)
    found = read(task, Kind.STEP, Kind.TOOL, Kind.MODEL)
    assert [(span.kind, span.label) for span in found] == [
        (Kind.STEP, "ocr"),
        (Kind.TOOL, "search"),
        (Kind.MODEL, "agent/model#2"),
    ]
    assert (found[0].began, found[0].ended) == (at(0.5), at(1))
    assert found[2].note == "m, 1,200 tokens in, 7 out"


def test_a_step_of_an_earlier_release_has_an_end_only() -> None:
    task = make_task()
    add_step(task, run_of(task, started_at=at(0)), "old")
    [span] = read(task, Kind.STEP)
    assert span.began is None
    assert span.ended


def test_a_step_that_raised_is_found_in_the_log_of_its_run() -> None:
    task = make_task()
    run = run_of(task, started_at=at(0))
    text = "step post after 3 s failed after 0.250 s: ConnectionError: away\nreally"
    lines = [(text, "a2a.steps"), (text, "clerk"), ("step", "a2a.steps")]
    run_lines.write(
        [run_lines.RunLogLine(run.pk, 1, at(2), logging.INFO, name, said) for said, name in lines]
    )
    [span] = read(task, Kind.STEP)
    assert (span.label, span.note) == ("post after 3 s", "ConnectionError: away\nreally")
    assert (span.began, span.ended, span.is_fault) == (at(1.75), at(2), True)


def test_a_question_lasts_until_its_answer_or_the_end_of_the_task() -> None:
    task = make_task()
    states = (TaskState.INPUT_REQUIRED, TaskState.WORKING, TaskState.AUTH_REQUIRED)
    for n, state in enumerate(states, 2):
        add_status(task, state)
        Event.objects.filter(task=task, number=n).update(created_at=at(n))
    first, second = read(task, Kind.PERSON)
    assert (first.began, first.ended) == (at(2), at(3))
    assert (second.label, second.ended) == ("credentials", None)
    add_status(task, TaskState.CANCELED)
    assert read(task, Kind.PERSON)[1].ended


def test_calls_of_other_agents_and_webhooks_are_spans() -> None:
    root, child = make_task("root"), make_task("child", agent="billing", state=TaskState.FAILED)
    make_call(root.pk, child.pk, root.pk, 1)
    add_attempt(make_delivery(make_config(root)), 503, started_at=at(1), seconds=2.0)
    call, webhook = read(root, Kind.CALL, Kind.WEBHOOK)
    assert (call.label, call.note, call.is_fault, call.of) == ("billing", "failed", True, child.pk)
    assert (webhook.began, webhook.ended, webhook.note) == (at(1), at(3), "503")


def test_users_see_no_more_than_they_may() -> None:
    task = make_task()
    add_step(task, run_of(task, started_at=at(0)), "ocr")
    add_attempt(make_delivery(make_config(task)), 503)
    assert not read_spans(task, shows_runs=False, shows_faults=False, shows_webhooks=False)
