"""Trees of tasks: what agents of the host have called each other for, and what became of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from lab.faultlab.dump import EventRow, TaskRow
from lab.faultlab.evidence import ENDED, WAITING, Evidence
from lab.faultlab.folding import INPUT, STATUS, said

__all__ = [
    "answers_have_an_effect",
    "calls_are_closed",
    "calls_have_one_task",
    "questions_go_up_once",
]

Findings = Iterator[tuple[str, Sequence[Any]]]


def calls_have_one_task(e: Evidence) -> Findings:
    """A task was sent by a client, or called by an agent whose step names it: any other is one too many."""
    steps = {(step.task, step.input_number, step.name): step for step in e.dump.steps}
    for task in e.dump.tasks:
        call = e.call_of(task)
        if call is None:
            if not e.keys(task):
                yield f"{task.id} was neither sent nor called", (task,)
            continue
        step = steps.get((call.parent, call.input_number, call.name))
        if step is None or json.loads(step.result).get("task") != task.id:
            yield f"the step of {call.name} does not name {task.id}", (call, step)


def calls_are_closed(e: Evidence) -> Findings:
    """Once a task has ended, none that it has called goes on, and nothing is left to do for them."""
    for task in e.dump.tasks:
        for child in e.called(task):
            call = e.call_of(child)
            if task.state in ENDED and child.state not in ENDED:
                yield f"{task.id} has ended, and {child.id} was left {child.state}", (task, child)
            elif task.state in ENDED and call and (call.open or call.cancel):
                yield f"{call.name} of {task.id} was left open", (task, call)


def questions_go_up_once(e: Evidence) -> Findings:
    """A task that has called others asks once for each question of theirs, and each answer goes down once."""
    for task in e.dump.tasks:
        called = e.called(task)
        if not called:
            continue
        asked = _count(e, called, _is_question)
        if (stood := _count_questions(e, task)) > asked:
            yield f"{task.id} asked {stood} times for {asked} questions", (task, *called[:2])
        answered = _count(e, [task], _is_input) - 1
        if (passed := _count(e, called, _is_input) - len(called)) > answered:
            yield f"{passed} of {answered} answers went down from {task.id}", (task, *called[:2])


def answers_have_an_effect(e: Evidence) -> Findings:
    """The last words of a completed tree have the answer that its client gave."""
    for task in e.dump.tasks:
        if task.agent != "lab-tree" or task.state != "TASK_STATE_COMPLETED":
            continue
        inputs = [event for event in e.log(task) if _is_input(event)]
        words = [part.get("text") for part in json.loads(inputs[-1].body or "{}").get("parts", [])]
        if len(inputs) < 2 or not all(word in task.status_message for word in words):
            yield f"{task.id} was completed without its answer", (task, inputs[-1])


def _count(e: Evidence, tasks: Sequence[TaskRow], wanted: Any) -> int:
    return sum(bool(wanted(event)) for task in tasks for event in e.log(task))


def _count_questions(e: Evidence, task: TaskRow) -> int:
    """Count the questions of a task. One that words of the task have hidden stands again as it was: it is not a new one."""
    asked: dict[str, Any] = {}
    before: dict[str, Any] = {}
    count = 0
    for event in e.log(task):
        if event.kind != STATUS:
            continue
        status = said(event)["status"]
        message = status.get("message", {})
        if status["state"] in WAITING:
            hidden = "message" in before and before["state"] not in WAITING
            count += not (hidden and asked == message)
            asked = message
        before = status
    return count


def _is_question(event: EventRow) -> bool:
    return event.kind == STATUS and said(event)["status"]["state"] in WAITING


def _is_input(event: EventRow) -> bool:
    return event.kind == INPUT
