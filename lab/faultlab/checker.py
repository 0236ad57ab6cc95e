"""The offline checker: history, ledger and dump in, violations out. Pure, and with its own idea of what is right.

It imports nothing of the host, so that a mistake there is not repeated here. An invariant is a generator of findings,
each a sentence and its witness: the few records and rows that prove it. A run that cannot be checked is a violation.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from lab.faultlab.dump import Dump, EventRow, RunRow, StepRow, TaskRow
from lab.faultlab.evidence import (
    ENDED,
    WAITING,
    Evidence,
    Limits,
    Stream,
    attempts_in,
    grouped,
)
from lab.faultlab.folding import (
    ARTIFACT,
    STATUS,
    SUBMITTED,
    Folded,
    fold,
    prefixes,
    said,
)
from lab.faultlab.history import Record
from lab.faultlab.kin import (
    answers_have_an_effect,
    calls_are_closed,
    calls_have_one_task,
    questions_go_up_once,
)
from lab.faultlab.texts import (
    completed_tasks_say_all,
    streams_add_up_to_the_text,
    what_is_read_is_said_once,
)

__all__ = ["INVARIANTS", "Invariant", "Limits", "Violation", "check", "findings", "recoveries"]

#: Records and rows.
Witness = Sequence[Any]
Finding = tuple[str, Witness]
Findings = Iterator[Finding]
Invariant = Callable[[Evidence], Findings]


#: Characters of a witness that are shown to people.
MAX_LENGTH = 600


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken promise, in words and in records and rows."""

    invariant: str
    text: str
    witness: Witness

    def __str__(self) -> str:
        """For people: the sentence, and below it the witness, of which long bodies are cut."""
        shown = [repr(one)[:MAX_LENGTH] for one in self.witness]
        return "\n    ".join([f"{self.invariant}: {self.text}", *shown])


# --- can it be checked? -----------------------------------------------------------------------


def can_be_checked(e: Evidence) -> Findings:
    if not e.history:
        yield "there is no history", ()
    if not e.dump.tasks:
        yield "there are no tasks in the dump", ()
    if e.history and not e.seen("accepted"):
        yield "no client got anything accepted", tuple(e.history[:3])


# --- I1: what was accepted is there, and comes to an end -----------------------------------------


def accepted_tasks_exist(e: Evidence) -> Findings:
    for record in e.seen("accepted"):
        task = record.get("task")
        if task is not None and task not in e.tasks:
            yield f"the accepted task {task} does not exist", (record,)


def tasks_come_to_an_end(e: Evidence) -> Findings:
    shapes = {r["task"]: (r, e.sent_shapes.get(str(r["key"]))) for r in e.seen("accepted")}
    for task in e.dump.tasks:
        accepted, shape = shapes.get(task.id, (None, None))
        wanted = e.limits.wants.get(str(shape), ENDED | WAITING)
        if task.id in e.asked_to_cancel:
            wanted |= {"TASK_STATE_CANCELED"}
        if task.agent in e.limits.at_most_once and _may_have_been_cut_short(e, task):
            wanted |= {"TASK_STATE_FAILED"}
        if task.state not in wanted:
            witness = (accepted, task, *e.log(task)[-1:]) if accepted else (task,)
            yield f"{task.id} ({shape}) was left {task.state}", witness


#: What the host notes of an attempt that died with nothing else in its process.
ALONE = re.compile(r"^Attempt \d+ on \S+ died: ", re.MULTILINE)


def _may_have_been_cut_short(e: Evidence, task: TaskRow) -> bool:
    """Did a process of its attempts end or freeze, or was the database away for as long as an agent is let be?

    If the agent never began, the process that had claimed the run is not on record: any hurt one may be it.
    """
    died = (r for r in e.seen("process") if r.get("event") == "died")
    hurt = {record.get("pid") for record in [*e.seen("fault"), *died]}
    away = (
        e.mended(f.t, math.inf) - f.t for f in e.seen("fault") if f.get("process") == "postgres"
    )
    cut_off = any(seconds > 2 * e.limits.lease for seconds in away)
    began = list(e.did(task, "began"))
    if not began:
        return cut_off or bool(hurt - {None})
    return cut_off or any(record["pid"] in hurt for record in began)


def nobody_else_cancels(e: Evidence) -> Findings:
    for task in e.dump.tasks:
        if task.state == "TASK_STATE_CANCELED" and task.id not in e.asked_to_cancel:
            yield f"{task.id} was cancelled, and nobody had asked for it", (task,)


# --- I2, I3, I4: the log ------------------------------------------------------------------------


def nothing_follows_the_end(e: Evidence) -> Findings:
    for task in e.dump.tasks:
        log = e.log(task)
        ends = [event for event in log if event.state in ENDED]
        if len(ends) > 1:
            yield f"{task.id} ended {len(ends)} times", tuple(ends)
        elif ends and log[-1] is not ends[0]:
            yield f"{task.id} went on after its end", (ends[0], log[log.index(ends[0]) + 1])
        elif bool(ends) != (task.state in ENDED):
            yield f"{task.id} is {task.state}, but its log says otherwise", (task, *log[-1:])


_NEXT = frozenset({"TASK_STATE_WORKING"}) | WAITING | ENDED
#: Which state may follow which: A2A 1.0 §4.1.3 and docs/architecture.md, written anew.
LEGAL = {
    SUBMITTED: _NEXT,
    "TASK_STATE_WORKING": _NEXT,
    "TASK_STATE_INPUT_REQUIRED": _NEXT,
    "TASK_STATE_AUTH_REQUIRED": _NEXT,
}


def transitions_are_legal(e: Evidence) -> Findings:
    for task in e.dump.tasks:
        state, before = SUBMITTED, None
        for event in e.log(task):
            if event.kind != STATUS:
                continue
            if event.state not in LEGAL.get(state, frozenset()):
                witness = (before, event) if before else (event,)
                yield f"{task.id} went from {state} to {event.state or 'nothing'}", witness
            state, before = event.state, event


def numbers_have_no_gaps(e: Evidence) -> Findings:
    for task in e.dump.tasks:
        log = e.log(task)
        wrong = [(event, n) for n, event in enumerate(log, 1) if event.number != n]
        if wrong:
            event, number = wrong[0]
            yield f"event {number} of {task.id} is missing", (*log[number - 2 : number - 1], event)
        elif task.last_event != len(log):
            witness = (task, *log[-1:])
            yield f"{task.id} counts {task.last_event} events and has {len(log)}", witness


def orphans_of_the_log(e: Evidence) -> Findings:
    known = {task.task for task in e.dump.tasks}
    for event in e.dump.events:
        if event.task not in known:
            yield f"event {event.number} belongs to no task", (event,)


# --- I5: what was seen is in the log --------------------------------------------------------------


def frames_are_in_the_log(e: Evidence) -> Findings:
    for frame in e.seen("frame"):
        text = _FRAMES.get(frame["kind"], _unknown_frame)(e, frame)
        if text:
            task = e.tasks.get(str(frame.get("task")))
            logged = [x for x in e.log(task) if x.number == frame["id"]] if task else []
            yield text, (frame, *logged)


def _unknown_frame(e: Evidence, frame: Record) -> str | None:
    return f"a frame of an unknown kind, {frame['kind']}"


def _update_frame(e: Evidence, frame: Record) -> str | None:
    task = e.tasks.get(str(frame["task"]))
    if task is None:
        return f"a frame of {frame['task']}, which does not exist"
    logged = next((x for x in e.log(task) if x.number == frame["id"]), None)
    if logged is None:
        return f"event {frame['id']} of {task.id} was shown and is not in the log"
    body = {k: v for k, v in frame["body"].items() if k not in {"taskId", "contextId"}}
    if logged.kind != _KINDS[frame["kind"]] or said(logged) != body:
        return f"event {frame['id']} of {task.id} was shown otherwise than it was logged"
    return None


def _task_frame(e: Evidence, frame: Record) -> str | None:
    task = e.tasks.get(str(frame["task"]))
    if task is None:
        return f"a Task was shown, {frame['task']}, that does not exist"
    if frame["id"] > len(e.log(task)):
        return f"{task.id} was shown at event {frame['id']}, which is not in the log"
    if not fold(e.log(task), frame["id"]).shows(frame["body"]):
        return f"{task.id} was shown otherwise than it was at event {frame['id']}"
    return None


def _error_frame(e: Evidence, frame: Record) -> str | None:
    """A stream may end with an error: that the host cannot go on now."""
    return None if _code(frame["body"]) in {503, -32000} else "a stream broke with another error"


def _message_frame(e: Evidence, frame: Record) -> str | None:
    direct = (row.body for row in e.dump.messages if row.role == "ROLE_AGENT")
    return (
        None
        if frame["body"] in map(json.loads, direct)
        else "a Message was shown that is nowhere kept"
    )


_KINDS = {"status": STATUS, "artifact": ARTIFACT}
_FRAMES: dict[str, Callable[[Evidence, Record], str | None]] = {
    "status": _update_frame,
    "artifact": _update_frame,
    "task": _task_frame,
    "message": _message_frame,
    "error": _error_frame,
}


# --- I6: streams ----------------------------------------------------------------------------------


def streams_are_contiguous(e: Evidence) -> Findings:
    for stream in e.streams:
        task = e.tasks.get(stream.task or "")
        if task is not None:
            yield from _gaps(e, task, stream)


def _gaps(e: Evidence, task: TaskRow, stream: Stream) -> Findings:
    """Every frame is the next one; a Task is only shown at the beginning, or where events are gone."""
    shown = [x.number for x in e.log(task) if x.kind in {STATUS, ARTIFACT}]
    at: int | None = stream.opened.get("after")
    before, fresh = stream.opened, True
    for record in stream.shown:
        if record.what == "notice":
            if e.log(task)[:1] and e.log(task)[0].number < record["before"]:
                yield f"{task.id}: events are called removed that are there", (before, record)
            at = None
        elif record["kind"] == "task":
            yield from _beginning(stream, record, at if fresh else record["id"] - 1)
            at = record["id"]
        elif record["kind"] in _KINDS:
            wanted = next((n for n in shown if n > (at or 0)), None)
            if at is None or record["id"] != wanted:
                text = f"{task.id}: after event {at} came {record['id']} instead of {wanted}"
                yield text, (before, record)
            at = record["id"]
        before, fresh = record, False


def _beginning(stream: Stream, frame: Record, cursor: int | None) -> Findings:
    """A Task: rightly shown to whoever has no cursor, or has seen all there is (or before what a send answers with)."""
    if cursor is None or cursor == frame["id"]:
        return
    if stream.opened.get("how") == "send" and cursor < frame["id"]:
        return
    yield f"a client that was at event {cursor} was shown the Task", (stream.opened, frame)


def streams_tell_the_end(e: Evidence) -> Findings:
    """One that ends in order has told the end of the task or of the turn, unless its process was ending."""
    ending = {fault.get("process") for fault in e.seen("fault")}
    for stream in e.streams:
        closed, last = stream.closed, stream.shown[-1] if stream.shown else None
        if closed is None or closed["how"] != "end" or stream.opened.get("process") in ending:
            continue
        if last is None or not _is_an_end(stream, last):
            yield "a stream ended before its task did", (stream.opened, *stream.shown[-1:], closed)


def _is_an_end(stream: Stream, frame: Record) -> bool:
    """Is this the last frame: the end of the task, or what ends the turn that a send is about?"""
    state = (frame.get("body", {}).get("status") or {}).get("state")
    ends = ENDED | WAITING if stream.opened.get("how") == "send" else ENDED
    return frame.get("kind") in {"message", "error"} or state in ends


def streams_do_not_stand_still(e: Evidence) -> Findings:
    """One that is open for some time after its task ended has told so, unless its process was frozen."""
    frozen = {fault.get("process") for fault in e.seen("fault") if fault.get("action") == "stop"}
    for stream in e.streams:
        task = e.tasks.get(stream.task or "")
        if task is None or task.state not in ENDED or stream.opened.get("process") in frozen:
            continue
        end, until = e.log(task)[-1], stream.closed.t if stream.closed else e.end
        start = e.mended(max(end.created_at, stream.opened.t), until)
        told = any(_is_an_end(stream, frame) for frame in stream.shown[-1:])
        if not told and until - start > e.limits.recovery:
            text = f"{task.id} ended, and a stream of it stood still"
            yield text, (stream.opened, *stream.shown[-1:], end)


# --- I7: attempts -----------------------------------------------------------------------------------


def attempts_never_go_back(e: Evidence) -> Findings:
    for events in grouped(e.dump.events, lambda x: (x.task, x.run)).values():
        speakers = [(n, event) for event in events for n in attempts_in(event)]
        for (before, old), (after, new) in pairwise(speakers):
            if after < before and new.run is not None:
                yield f"run {new.run}: attempt {after} wrote after attempt {before}", (old, new)


def who_lost_its_run_is_silent(e: Evidence) -> Findings:
    """An event whose statement began after a later attempt's agent did was written without the right to."""
    for task in e.dump.tasks:
        begun = [(run.run, r) for r in e.did(task, "began") if (run := e.run_of(task, r))]
        for event in e.log(task):
            for attempt in attempts_in(event)[:1]:
                yield from (
                    (f"attempt {attempt} wrote after attempt {r['attempt']} began", (r, event))
                    for run, r in begun
                    if run == event.run and attempt < r["attempt"] and r.t < event.created_at
                )


def attempts_are_counted(e: Evidence) -> Findings:
    runs = {run.run: run for run in e.dump.runs}
    for event in e.dump.events:
        run = runs.get(event.run or 0)
        if run is not None and max(attempts_in(event), default=0) > _counted(run):
            yield f"run {run.run} has no such attempt", (event, run)
    for task in e.dump.tasks:
        for began in e.did(task, "began"):
            run = e.run_of(task, began)
            if run is not None and began["attempt"] > _counted(run):
                yield f"run {run.run} began more attempts than it counts", (began, run)


def _counted(run: RunRow) -> int:
    """Its attempts; one handed back and then cancelled has one more than it counts."""
    return run.attempt + (run.status in {"canceled", "dropped"})


def a_death_is_an_attempt(e: Evidence) -> Findings:
    for lost in _interruptions(e):
        later = [r for r in e.did(lost.task, "began") if r.t > lost.fault.t]
        if _stopped(e, lost) or not later or later[0]["attempt"] > lost.began["attempt"]:
            continue
        if _same_run(e, lost.task, lost.began, later[0]):
            text = f"{lost.task.id}: attempt {lost.began['attempt']} died and began again"
            yield text, (lost.began, lost.fault, later[0])


def _stopped(e: Evidence, lost: _Interruption) -> bool:
    """Had the attempt stopped before the fault, or as its process woke? Then it may have been handed back: no death."""
    frozen = lost.fault.get("action") == "stop"
    last = e.woken(lost.fault) + e.limits.cancel if frozen else lost.fault.t
    return any(
        r["attempt"] == lost.began["attempt"] and lost.began.t <= r.t <= last
        for r in e.did(lost.task, "stopped")
    )


def _same_run(e: Evidence, task: TaskRow, one: Record, other: Record) -> bool:
    return e.run_of(task, one) == e.run_of(task, other)


def who_is_not_hurt_keeps_its_runs(e: Evidence) -> Findings:
    """On a machine that keeps up, an attempt has a successor only if its process or the database was hurt."""
    if not e.limits.steady:
        return
    for task in e.dump.tasks:
        for one, next_ in pairwise(e.did(task, "began")):
            again = one["attempt"] < next_["attempt"] and _same_run(e, task, one, next_)
            if again and not _hurt(e, one, next_.t):
                text = f"attempt {next_['attempt']} of {task.id} began, and nobody had been hurt"
                yield text, (one, next_)


def _hurt(e: Evidence, began: Record, until: float) -> bool:
    return any(
        began.t <= fault.t <= until and fault.get("pid") == began["pid"]
        for fault in e.seen("fault")
    ) or any(f.get("process") == "postgres" and f.t <= until for f in e.seen("fault"))


def a_token_is_that_of_a_running_run(e: Evidence) -> Findings:
    """The lab may look at the tables while it works: a token on a task without a running run is `held`."""
    for record in e.seen("held"):
        yield f"{record['task']} was held by no running run", (record,)


def nobody_tries_for_ever(e: Evidence) -> Findings:
    most = e.limits.max_attempts
    for run in e.dump.runs:
        alone = len(ALONE.findall(run.error))
        if most is not None and alone > most:
            yield f"run {run.run} died alone {alone} times of {most}", (run,)


# --- I8: steps ----------------------------------------------------------------------------------------


def kept_steps_are_not_taken_again(e: Evidence) -> Findings:
    for task in e.dump.tasks:
        for effect, step in _effects(e, task):
            if step is not None and effect["begun"] > step.created_at:
                yield (
                    f"step {step.name} of {task.id} was taken again after it was kept",
                    (
                        step,
                        effect,
                    ),
                )


def _effects(e: Evidence, task: TaskRow) -> Iterator[tuple[Record, StepRow | None]]:
    """Each execution of a step's body, with the row of that step in the same turn."""
    rows = {(step.input_number, step.name): step for step in e.steps(task)}
    for effect in e.did(task, "effect"):
        run = e.run_at(task, effect["begun"])
        yield effect, rows.get((run.input_number, effect["step"])) if run else None


def what_a_step_gave_was_kept(e: Evidence) -> Findings:
    """Once an attempt has gone on to its next step, the one before is kept: nobody may take it again."""
    for task in e.dump.tasks:
        for effects in _turns(e, task).values():
            for done, going_on in pairwise(effects):
                if done["attempt"] == going_on["attempt"] and done["step"] != going_on["step"]:
                    for again in _again(effects, done["step"], going_on["begun"])[:1]:
                        text = f"the result of step {done['step']} of {task.id} was used, and it was taken again"
                        yield text, (done, going_on, again)


def _turns(e: Evidence, task: TaskRow) -> dict[int, list[Record]]:
    """The executions of steps by turn, in order."""
    effects = sorted(e.did(task, "effect"), key=lambda effect: float(effect["begun"]))

    def turn(effect: Record) -> int:
        run = e.run_at(task, effect["begun"])
        return run.input_number if run else 0

    return grouped(effects, turn)


def _again(effects: Sequence[Record], step: str, after: float) -> list[Record]:
    return [effect for effect in effects if effect["step"] == step and effect["begun"] > after]


def completed_tasks_kept_their_steps(e: Evidence) -> Findings:
    for task in e.dump.tasks:
        if task.state == "TASK_STATE_COMPLETED" and task.agent not in e.limits.at_most_once:
            for effect, step in _effects(e, task):
                if step is None:
                    yield (
                        f"step {effect['step']} of {task.id} was taken and not kept",
                        (effect, *e.runs(task), *e.steps(task)),
                    )


def who_must_not_act_twice_does_not(e: Evidence) -> Findings:
    for task in e.dump.tasks:
        if task.agent not in e.limits.at_most_once:
            continue
        for effects in _turns(e, task).values():
            for step, same in grouped(effects, lambda effect: str(effect["step"])).items():
                if len(same) > 1:
                    yield f"{task.agent} acted twice: {step} of {task.id}", tuple(same)


# --- I9: recovery ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Interruption:
    """A turn that lost its process."""

    task: TaskRow
    fault: Record
    began: Record
    #: What came next: the record or event, and its moment.
    next: Record | EventRow | None
    moment: float


def _interruptions(e: Evidence) -> Iterator[_Interruption]:
    for fault in e.kills:
        for task in e.dump.tasks:
            earlier = [r for r in e.did(task, "began") if r.t <= fault.t]
            if not earlier or _had_successor(e, task, earlier):
                continue
            if earlier[-1]["pid"] == fault["pid"]:
                found = _next(e, task, fault, earlier[-1])
                if found.next is None or found.moment >= fault.t:
                    yield found


def _had_successor(e: Evidence, task: TaskRow, begun: Sequence[Record]) -> bool:
    """Had a later attempt of its run begun before the last of these? Then that was a process that had been frozen."""
    last = begun[-1]
    return any(r["attempt"] > last["attempt"] and _same_run(e, task, r, last) for r in begun[:-1])


def _next(e: Evidence, task: TaskRow, fault: Record, began: Record) -> _Interruption:
    """What ended the turn, or began it again; attempts handed back in order are not counted."""
    lost = _Interruption(task, fault, began, None, e.end)
    least = began["attempt"] + (0 if _stopped(e, lost) else 1)
    ends: list[tuple[float, Record | EventRow]] = [
        (x.created_at, x)
        for x in e.log(task)
        if x.created_at >= began.t and x.state in ENDED | WAITING
    ]
    ends += [(r.t, r) for r in e.did(task, "began") if r.t > fault.t and r["attempt"] >= least]
    moment, what = min(ends, key=lambda end: end[0], default=(e.end, None))
    return replace(lost, next=what, moment=moment)


def the_interrupted_are_taken_up(e: Evidence) -> Findings:
    for lost in _interruptions(e):
        witness = (lost.fault, lost.began, *([lost.next] if lost.next else [lost.task]))
        if lost.next is None:
            yield f"{lost.task.id} was never taken up again", witness
            continue
        seconds = lost.moment - e.mended(lost.fault.t, lost.moment)
        # A rescuer that freezes in its transaction holds the runs until the server ends its session.
        frozen = any(
            fault.get("name") == "rescue.fenced"
            and fault.get("action") == "stop"
            and lost.fault.t < fault.t < lost.moment
            for fault in e.seen("fault")
        )
        if seconds > e.limits.recovery + (e.limits.lease / 3 if frozen else 0):
            yield f"{lost.task.id} was taken up only after {seconds:.1f} s", witness


def recoveries(history: Sequence[Record], ledger: Sequence[Record]) -> list[float]:
    """Seconds from each fault that took a process away to the next beginning of each task it was carrying."""
    e = Evidence(history, ledger, Dump(), Limits(lease=0.0))
    return [seconds for fault in e.kills for seconds in _taken_up(e, fault)]


def _taken_up(e: Evidence, fault: Record) -> Iterator[float]:
    for acts in e.acts.values():
        begun = acts.get("began", [])
        before = [r for r in begun if r.t <= fault.t]
        later = [r for r in begun if r.t > fault.t]
        if before and later and _cut_short(acts, before[-1], fault):
            yield later[0].t - fault.t


def _cut_short(acts: dict[str, list[Record]], began: Record, fault: Record) -> bool:
    """Was the attempt under way in the process that was hurt?"""
    ended = (r.t for r in acts.get("stopped", []) if r["attempt"] == began["attempt"])
    return bool(
        began["pid"] == fault.get("pid") and not any(began.t <= t <= fault.t for t in ended)
    )


# --- I15: cancelling --------------------------------------------------------------------------------------


def cancelled_stays_cancelled(e: Evidence) -> Findings:
    for record in e.seen("cancelled"):
        task = e.tasks.get(record["task"])
        if task is None:
            yield f"the cancelled task {record['task']} does not exist", (record,)
        elif task.state != "TASK_STATE_CANCELED":
            yield f"{task.id} was cancelled and is {task.state}", (record, task, *e.log(task)[-1:])


def cancelled_agents_stop(e: Evidence) -> Findings:
    for record in e.seen("cancelled"):
        task = e.tasks.get(record["task"])
        signs = e.did(task, "tick") + e.did(task, "effect") if task else []
        last = max(signs, key=lambda r: r.t, default=None)
        if last is not None and last.t > _latest_sign(e, record):
            seconds = last.t - record.t
            text = f"the agent of {record['task']} was at work {seconds:.1f} s after the cancel"
            yield text, (record, last)


def _latest_sign(e: Evidence, record: Record) -> float:
    """The last moment at which an agent may be at work after the cancel; a frozen one, after it woke."""
    faults = [fault for fault in e.seen("fault") if fault.t <= record.t + e.limits.cancel]
    if not faults:
        return record.t + e.limits.cancel
    woken = (e.woken(fault) for fault in faults if fault.get("action") == "stop")
    return max([record.t + e.limits.forced, *(w + e.limits.cancel for w in woken if w < math.inf)])


# --- I16: one key, one task ----------------------------------------------------------------------------------


def a_key_is_one_task(e: Evidence) -> Findings:
    for key, records in grouped(e.seen("accepted"), lambda r: r["key"]).items():
        others = [r for r in records if r.get("task") != records[0].get("task")]
        if others:
            yield f"key {key} was accepted as two tasks", (records[0], others[0])


def a_key_is_one_row(e: Evidence) -> Findings:
    rows = grouped(e.dump.keys, lambda row: row.key)
    for key, records in grouped(e.seen("accepted"), lambda r: str(r["key"])).items():
        found = rows.get(key, [])
        task = e.tasks.get(str(records[0].get("task")))
        if len(found) != 1:
            yield f"key {key} has {len(found)} rows", (records[0], *found)
        elif task is not None and found[0].task != task.task:
            yield f"key {key} is kept with another task", (records[0], found[0], task)


def a_run_is_one_key(e: Evidence) -> Findings:
    """Every message of the lab brings a key, so a run without one answers a message accepted twice.

    Calls of agents bring none, and what answers a question of theirs belongs to the run that has called.
    """
    keys = grouped(e.dump.keys, lambda row: row.run)
    kin = {key for call in e.dump.calls for key in (call.task, call.parent)}
    for run in e.dump.runs:
        if run.task not in kin and len(keys.get(run.run, [])) != 1:
            yield f"run {run.run} belongs to no key, or to several", (run, *keys.get(run.run, []))


# --- I17: errors --------------------------------------------------------------------------------------------------

NAMED = frozenset({400, 401, 403, 404, 405, 413, 415, 422})
CODES = frozenset({-32700, -32600, -32601, -32602, -32000, *range(-32009, -32000)} - {-32006})


def errors_are_clean(e: Evidence) -> Findings:
    for record in e.seen("refused", "failed-request", "not-cancelled", "closed"):
        status, code = record.get("status"), _code(record.get("code"))
        if not _is_clean(status, code, record.get("retry_after")):
            yield f"a client was told {status} {code}", (record,)


def _code(told: Any) -> Any:
    """The code in an error, whatever it is wrapped in."""
    while isinstance(told, dict):
        told = told.get("error", told.get("code"))
    return told


def _is_clean(status: int | None, code: Any, retry_after: Any) -> bool:
    if isinstance(code, int) and code < 0 and code not in CODES:
        return False
    if status == 503:
        return retry_after is not None
    return status is None or status < 400 or status in NAMED


def no_process_breaks(e: Evidence) -> Findings:
    """Processes end when they are asked to or killed, never with an error or a crash."""
    for record in e.seen("process"):
        if record["event"] == "died" and record.get("code") not in {None, 0, -9, -15}:
            yield f"{record['name']} ended with code {record['code']}", (record,)


# --- I19: nothing is left ---------------------------------------------------------------------------------------------


def no_run_is_left(e: Evidence) -> Findings:
    for run in e.dump.runs:
        if run.status in {"queued", "running"} or run.token:
            yield f"run {run.run} was left {run.status}", (run,)


def no_task_is_held(e: Evidence) -> Findings:
    for task in e.dump.tasks:
        if task.run_token:
            yield f"{task.id} was left with a token", (task, *_last_run(e, task))


def _last_run(e: Evidence, task: TaskRow) -> list[RunRow]:
    return e.runs(task)[-1:]


# --- the fold -------------------------------------------------------------------------------------------------------------


def rows_are_the_fold_of_the_log(e: Evidence) -> Findings:
    for task in e.dump.tasks:
        folded = fold(e.log(task))
        said_last = json.loads(task.status_message or "null")
        if (task.state, said_last) != (folded.state, (folded.status or {}).get("message")):
            status = [event for event in e.log(task) if event.kind == STATUS]
            yield f"the status of {task.id} is not what its log says", (task, *status[-1:])
        yield from _artifacts_differ(e, task, folded)


def _artifacts_differ(e: Evidence, task: TaskRow, folded: Folded) -> Findings:
    rows = {row.artifact_id: row for row in e.artifacts(task)}
    for name in folded.artifacts.keys() | rows.keys():
        row, logged = rows.get(name), folded.artifacts.get(name)
        # While a row has no body, readers assemble the artifact from the log.
        if row is None or (row.body and json.loads(row.body) != logged):
            yield (
                f"artifact {name} of {task.id} is not what its log says",
                (
                    row or task,
                    logged,
                ),
            )


def messages_are_in_the_log(e: Evidence) -> Findings:
    for task in e.dump.tasks:
        logged = fold(e.log(task)).history
        kept = [row.number for row in e.messages(task)]
        if logged != kept:
            yield f"{task.id} logged messages {logged} and keeps {kept}", (task,)


def get_task_shows_the_fold(e: Evidence) -> Findings:
    for record in e.seen("got"):
        task = e.tasks.get(record["task"])
        if task is None:
            yield f"{record['task']} was shown, which does not exist", (record,)
        elif not prefixes(e.log(task), record["view"]):
            yield f"{task.id} was shown as it never was", (record, task)


INVARIANTS: tuple[tuple[str, Invariant], ...] = (
    ("checkable", can_be_checked),
    ("I1", accepted_tasks_exist),
    ("I1", tasks_come_to_an_end),
    ("I1", nobody_else_cancels),
    ("I2", nothing_follows_the_end),
    ("I3", transitions_are_legal),
    ("I4", numbers_have_no_gaps),
    ("I4", orphans_of_the_log),
    ("I5", frames_are_in_the_log),
    ("I6", streams_are_contiguous),
    ("I6", streams_tell_the_end),
    ("I6", streams_do_not_stand_still),
    ("I7", attempts_never_go_back),
    ("I7", who_lost_its_run_is_silent),
    ("I7", attempts_are_counted),
    ("I7", a_death_is_an_attempt),
    ("I7", who_is_not_hurt_keeps_its_runs),
    ("I7", a_token_is_that_of_a_running_run),
    ("I7", nobody_tries_for_ever),
    ("I8", kept_steps_are_not_taken_again),
    ("I8", what_a_step_gave_was_kept),
    ("I8", completed_tasks_kept_their_steps),
    ("I8", who_must_not_act_twice_does_not),
    ("I9", the_interrupted_are_taken_up),
    ("I15", cancelled_stays_cancelled),
    ("I15", cancelled_agents_stop),
    ("I16", a_key_is_one_task),
    ("I16", a_key_is_one_row),
    ("I16", a_run_is_one_key),
    ("I17", errors_are_clean),
    ("alive", no_process_breaks),
    ("I19", no_run_is_left),
    ("I19", no_task_is_held),
    ("fold", rows_are_the_fold_of_the_log),
    ("fold", messages_are_in_the_log),
    ("fold", get_task_shows_the_fold),
    ("tree", calls_have_one_task),
    ("tree", calls_are_closed),
    ("tree", questions_go_up_once),
    ("tree", answers_have_an_effect),
    ("text", completed_tasks_say_all),
    ("text", what_is_read_is_said_once),
    ("text", streams_add_up_to_the_text),
)


def check(
    history: Sequence[Record],
    ledger: Sequence[Record],
    dump: Dump,
    limits: Limits | None = None,
) -> list[Violation]:
    """Every violation, invariant by invariant; an empty list means that all promises were kept."""
    evidence = Evidence(history, ledger, dump, limits)
    return [
        Violation(name, text, witness)
        for name, invariant in INVARIANTS
        for text, witness in findings(invariant, evidence)
    ]


def findings(invariant: Invariant, evidence: Evidence) -> Findings:
    """What an invariant finds; records or rows it cannot make sense of are a finding, not a crash."""
    try:
        yield from invariant(evidence)
    except (KeyError, TypeError, ValueError, AttributeError) as fault:
        yield f"{invariant.__name__} could not be checked: {fault!r}", ()
