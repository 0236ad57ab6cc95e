"""The checker: the evidence of an episode in, violations out. Pure, and with its own idea of what is right.

An invariant is a generator of findings, each a sentence and its witness.
"""

from __future__ import annotations

import base64
import copy
import itertools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lab.faultlab.checker import Violation
from lab.framework_kills.cases import APPROVED, Call, name_call
from lab.framework_kills.evidence import (
    Evidence,
    Exchange,
    Execution,
    Final,
    Frame,
    Kept,
    Said,
)
from lab.framework_kills.talk import RESUMING, TOOLS, USAGE
from tests.journeys.wire import Event, folded

__all__ = ["INVARIANTS", "check", "count", "find_recoveries"]

Findings = Iterator[tuple[str, Sequence[Any]]]
#: What names an exchange in an answer: its text, or the id of a call.
ANSWER = re.compile(r"\bt\d+l\d+e(\d+)|call_(\d+)_\d+")
#: What names an execution in the result of a tool.
RESULT = re.compile(r"(t\d+l\d+c\d+)x(\d+)")
#: Seconds that a killed process may go on for. A run is taken over much later.
DYING = 0.5
#: A task before its first event.
NOTHING = {"id": "", "contextId": "", "status": {"state": "TASK_STATE_SUBMITTED"}}
COMPLETED, WAITS = "TASK_STATE_COMPLETED", "TASK_STATE_INPUT_REQUIRED"
Slot = tuple[int, int]


class Known:
    """The evidence, by what is looked for in it."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence, self.case = evidence, evidence.case
        #: The requests for each line, in order.
        self.slots: dict[Slot, list[Exchange]] = defaultdict(list)
        for exchange in evidence.exchanges:
            self.slots[exchange.task, exchange.line].append(exchange)
        #: The executions of each call, in order.
        self.calls: dict[str, list[Execution]] = defaultdict(list)
        for execution in evidence.executions:
            self.calls[execution.call].append(execution)
        self.of_number = {exchange.number: exchange for exchange in evidence.exchanges}

    def last(self, slot: Slot, before: int | None = None) -> Exchange | None:
        """The last request for a line, before that number."""
        found = [e for e in self.slots.get(slot, ()) if before is None or e.number < before]
        return found[-1] if found else None

    def find_kills(self, since: float, until: float) -> list[float]:
        """When kills were made that cut off what was begun then, and begun again then."""
        return [k.at for k in self.evidence.kills if since - DYING <= k.at <= until]

    def lines(self, task: int) -> range:
        """The numbers of its lines."""
        return range(len(self.case.tasks[task].lines))

    def is_used(self, id_: str) -> bool:
        """Is it the id of a call in an answer that was used?"""
        exchange = self.of_number.get(int(id_.split("_")[1]))
        return exchange is not None and self.last((exchange.task, exchange.line)) is exchange

    def text(self, slot: Slot, exchange: Exchange) -> str:
        """What was answered."""
        return self.case.text(*slot, exchange.number)

    def is_denied(self, slot: Slot, call: Call) -> bool:
        """Did the client say no to it?"""
        return call.tool == APPROVED and self.case.tasks[slot[0]].answer == "no"


# --- the case was played ------------------------------------------------------------------------


def every_kill_was_made(e: Known) -> Findings:
    made = [(kill.task, kill.kill) for kill in e.evidence.kills]
    wanted = [(n, str(kill)) for n, task in enumerate(e.case.tasks) for kill in task.kills]
    if made != wanted:
        yield f"the kills were {made}, and not {wanted}", ()


def every_task_was_completed(e: Known) -> Findings:
    if len(e.evidence.finals) != len(e.case.tasks):
        yield f"{len(e.evidence.finals)} of {len(e.case.tasks)} tasks came to an end", ()
    for final in e.evidence.finals:
        if final.found["status"]["state"] != COMPLETED:
            yield f"task {final.number} is {final.found['status']['state']}", (final.found,)


def every_line_was_asked_for(e: Known) -> Findings:
    wanted = {(task, line) for task in range(len(e.case.tasks)) for line in e.lines(task)}
    if missing := wanted - e.slots.keys():
        yield f"nobody asked for {sorted(missing)}", ()
    for slot in e.slots.keys() - wanted:
        yield f"somebody asked for {slot}, which is no line", e.slots[slot]


# --- nothing used is made again -----------------------------------------------------------------


def used_answers_are_not_asked_for_again(e: Known) -> Findings:
    """An answer that was used is that of the last request for its line."""
    for where, numbers in _find_used(e, ANSWER):
        for number in map(int, numbers):
            used = e.of_number.get(number)
            last = e.last((used.task, used.line)) if used else None
            if used is None or last is None:
                yield f"{where} has the answer to a request {number} that nobody made", ()
            elif last is not used:
                what = f"line {used.line} of task {used.task}"
                yield f"{what} was asked for again after its answer was used in {where}", (used, last)  # fmt: skip


def used_results_are_not_made_again(e: Known) -> Findings:
    """A result of a tool that was used is that of its last execution."""
    for where, found in _find_used(e, RESULT):
        for call, number in found:
            made = e.calls.get(call, [])
            if not made or made[-1].number != int(number):
                yield f"{call} was executed again after its result was used in {where}", made


def _find_used(e: Known, pattern: re.Pattern[str]) -> Iterator[tuple[str, list[Any]]]:
    """Where answers and results are used: requests to the model, stored steps, texts of tasks."""
    single = pattern is ANSWER

    def find(text: str) -> list[Any]:
        found = pattern.findall(text)
        return [a or b for a, b in found] if single else found

    for exchange in e.evidence.exchanges:
        whole = "\n".join(f"{said.text} {said.calls} {said.call_id}" for said in exchange.messages)
        yield f"request {exchange.number}", find(whole)
    for step in e.evidence.steps:
        yield f"step {step.name}", find(_decode(step))
    for final in e.evidence.finals:
        yield f"task {final.number}", find("\n".join(_list_texts(final.found)))


def _decode(step: Kept) -> str:
    """The text of a step's result; checkpoints are bytes."""
    found = json.loads(step.result)
    if isinstance(found, dict) and "result" in found:
        found = found["result"]
    if isinstance(found, str) and step.name.startswith("checkpoint "):
        return base64.b64decode(found).decode("latin1")
    return step.result


def each_kill_repeats_one_request(e: Known) -> Findings:
    """A line is asked for again only because of a kill, and no two lines are because of the same one."""
    spent: set[float] = set()
    for slot, exchanges in sorted(e.slots.items()):
        for one, again in itertools.pairwise(exchanges):
            kills = e.find_kills(one.at, again.at)
            free = [at for at in kills if at not in spent]
            if not free:
                yield f"line {slot[1]} of task {slot[0]} was asked for again without a kill of its own", (one, again)  # fmt: skip
            spent.update(free[:1])


def each_kill_repeats_calls_of_one_line(e: Known) -> Findings:
    """A tool is executed again only because of a kill; of the same one only together with those that were at work beside it."""
    lines: dict[float, set[str]] = defaultdict(set)
    for call, executions in e.calls.items():
        for one, again in itertools.pairwise(executions):
            kills = e.find_kills(one.begun, again.begun)
            if not kills:
                yield f"{call} was executed again without a kill", (one, again)
            for at in kills[:1]:
                lines[at].add(call.partition("c")[0])
    for at, found in lines.items():
        if len(found) > 1:
            yield f"the kill at {at} made calls of {sorted(found)} be executed again", ()


def calls_are_those_of_the_script(e: Known) -> Findings:
    wanted = {
        name_call(task, number, n): e.is_denied((task, number), call)
        for task, script in enumerate(e.case.tasks)
        for number, line in enumerate(script.lines)
        for n, call in enumerate(line.calls)
    }
    for call in e.calls.keys() - wanted.keys():
        yield f"{call} was executed, and is in no script", e.calls[call]
    for call, denied in wanted.items():
        if denied != (call not in e.calls):
            yield f"{call} was {'executed' if denied else 'never executed'}", e.calls.get(call, ())


# --- memory -------------------------------------------------------------------------------------


def requests_have_the_whole_history(e: Known) -> Findings:
    """Each request has all messages of the conversation, each once: no answer is forgotten, none is there twice."""
    for exchange in e.evidence.exchanges:
        if (exchange.task, exchange.line) not in e.slots or exchange.task < 0:
            continue
        given = _group(said for said in exchange.messages if said.role != "system")
        wanted = _group(_remember(e, exchange))
        if given != wanted:
            at = next(
                (n for n, (a, b) in enumerate(zip(given, wanted, strict=False)) if a != b),
                min(len(given), len(wanted)),
            )
            yield (
                f"request {exchange.number} for line {exchange.line} of task {exchange.task} has another history"
                f" from message {at} on",
                (given[at : at + 2], wanted[at : at + 2]),
            )


def _group(messages: Iterator[Said]) -> list[Any]:
    """The messages, with results that stand side by side in the order of their ids. An answer without words is empty or not there."""
    found: list[Any] = []
    for said in messages:
        if said.role == "tool" and found and isinstance(found[-1], dict):
            found[-1][said.call_id] = said.text
        elif said.role == "tool":
            found.append({said.call_id: said.text})
        else:
            found.append(said)
    return found


def _remember(e: Known, exchange: Exchange) -> Iterator[Said]:
    """What the model must be told: all tasks before, and this one so far."""
    for task in range(exchange.task + 1):
        yield Said("user", e.case.prompt(task))
        for line in e.lines(task):
            if (task, line) == (exchange.task, exchange.line):
                return
            answer = e.last((task, line), exchange.number)
            if answer is None:
                yield Said("assistant", f"the answer of line {line} of task {task}")
                continue
            calls = e.case.tasks[task].lines[line].calls
            names = [name_call(task, line, n) for n in range(len(calls))]
            ids = [f"call_{answer.number}_{n}" for n in range(len(calls))]
            told = zip(ids, (call.tool for call in calls), names, strict=True)
            yield Said("assistant", e.text((task, line), answer), tuple(told))
            for id_, call, name in zip(ids, calls, names, strict=True):
                yield Said("tool", _find_result(e, exchange, (task, line), call, name, id_), (), id_)  # fmt: skip


def _find_result(e: Known, exchange: Exchange, slot: Slot, call: Call, name: str, id_: str) -> str:
    """What the model must be told of a call. The framework chooses the words of a refusal."""
    if e.is_denied(slot, call):
        told = [said.text for said in exchange.messages if said.call_id == id_]
        return told[0] if told else "refused"
    made = [one for one in e.calls.get(name, ()) if one.begun <= exchange.at]
    return f"{name}x{made[-1].number}" if made else "never executed"


# --- what the client sees -----------------------------------------------------------------------


def texts_are_whole(e: Known) -> Findings:
    """The artifacts are the texts of all answers, in order."""
    for final in e.evidence.finals:
        slots = [(final.number, line) for line in e.lines(final.number)]
        answers = [(slot, e.last(slot)) for slot in slots]
        texts = [e.text(slot, answer) for slot, answer in answers if answer]
        wanted, found = [text for text in texts if text], _list_texts(final.found)
        if found != wanted:
            yield f"the texts of task {final.number} are {found}, and not {wanted}", ()


def _list_texts(task: dict[str, Any]) -> list[str]:
    return ["".join(p.get("text", "") for p in a["parts"]) for a in task.get("artifacts", ())]


def streams_are_whole(e: Known) -> Findings:
    """Each way to follow a task shows each event once, in order, and comes to the same task."""
    for final in e.evidence.finals:
        where = f"of task {final.number}"
        numbers = [frame.number for frame in final.log]
        if numbers != sorted(set(numbers)):
            yield f"the log {where} has the events {numbers}", ()
        if _view(final.found) != _view(_fold(NOTHING, final.log)):
            yield f"the log {where} tells another task", (final.found, *final.log[-3:])
        known = {frame.number: frame.said for frame in final.log}
        for way, frames in final.seen.items():
            streams: dict[int, list[Frame]] = defaultdict(list)
            for frame in frames:
                streams[0 if way == RESUMING else frame.stream].append(frame)
            for seen in streams.values():
                yield from _check_stream(f"a stream {where} ({way})", final, seen, known)


def _check_stream(where: str, final: Final, seen: list[Frame], known: dict[int, Any]) -> Findings:
    """A stream begins with the task as it stood, and goes on with each event after that."""
    first, *rest = seen
    if "task" not in first.said:
        yield f"{where} does not begin with the task", (first,)
        return
    wanted = [n for n in known if first.number < n <= seen[-1].number]
    if [frame.number for frame in rest] != wanted:
        yield f"{where} has the events {[f.number for f in rest]}, and not {wanted}", ()
    for frame in rest:
        if known.get(frame.number) != frame.said:
            yield f"{where}: event {frame.number} is another one", (frame, known.get(frame.number))
    before = [frame for frame in final.log if frame.number <= seen[-1].number]
    if _view(_fold(first.said["task"], rest)) != _view(_fold(NOTHING, before)):
        yield f"{where} tells another task at event {seen[-1].number}", (first, *rest[-3:])


def _fold(task: dict[str, Any], frames: Sequence[Frame]) -> dict[str, Any]:
    """The task after these events."""
    return folded(copy.deepcopy(task), [Event(frame.number, frame.said) for frame in frames])


def _view(task: dict[str, Any]) -> Any:
    """What two views of a task have in common: its state, and the texts of its artifacts."""
    texts = {
        a["artifactId"]: "".join(p.get("text", "") for p in a["parts"])
        for a in task.get("artifacts", ())
    }
    return task["status"]["state"], texts


def answers_begin_anew_only_after_a_kill(e: Known) -> Findings:
    """An artifact is begun once for each request for its line."""
    for final in e.evidence.finals:
        updates = [f.said["artifactUpdate"] for f in final.log if "artifactUpdate" in f.said]
        begun = Counter(u["artifact"]["artifactId"] for u in updates if not u.get("append"))
        spoken = [(final.number, n) for n in e.lines(final.number)]
        spoken = [slot for slot in spoken if e.case.tasks[slot[0]].lines[slot[1]].words]
        for slot, artifact in zip(spoken, final.found.get("artifacts", ()), strict=False):
            if begun[artifact["artifactId"]] > len(e.slots[slot]):
                yield f"{artifact['artifactId']} of task {final.number} began {begun[artifact['artifactId']]} times", ()  # fmt: skip


def states_come_once(e: Known) -> Findings:
    """A task asks its question once, and ends once; the words of the client are there once."""
    for final in e.evidence.finals:
        asks = int(e.case.tasks[final.number].question >= 0)
        states = Counter(
            f.said["statusUpdate"]["status"]["state"] for f in final.log if "statusUpdate" in f.said
        )
        if (states[WAITS], states[COMPLETED]) != (asks, 1):
            yield f"task {final.number} has the states {dict(states)}", ()
        roles = Counter(message["role"] for message in final.found.get("history", ()))
        if roles != Counter({"ROLE_USER": 1 + asks, "ROLE_AGENT": asks}):
            yield f"the history of task {final.number} has the messages {dict(roles)}", ()


def usage_is_that_of_the_answers(e: Known) -> Findings:
    """The usage of a task is that of the answers it has, and of lost ones that were whole: a kill lost them after their report, or before."""
    for final in e.evidence.finals:
        answers = [e.last((final.number, line)) for line in e.lines(final.number)]
        known = [answer for answer in answers if answer]
        lost = [
            one
            for one in e.evidence.exchanges
            if one.task == final.number and one.state == "finished" and one not in known
        ]
        told = final.found.get("metadata", {}).get(USAGE, {})
        keys = ("requests", "inputTokens", "outputTokens")
        found = tuple(sum(model.get(key, 0) for model in told.values()) for key in keys)
        possible = {
            _sum_usage([*known, *some])
            for count in range(len(lost) + 1)
            for some in itertools.combinations(lost, count)
        }
        if found not in possible:
            yield f"the usage of task {final.number} is {found}, not one of {sorted(possible)}", (told, *known, *lost)  # fmt: skip


def _sum_usage(answers: Sequence[Exchange]) -> tuple[int, int, int]:
    inputs, outputs = (one.input_tokens for one in answers), (one.output_tokens for one in answers)
    return len(answers), sum(inputs), sum(outputs)


def tools_are_told_of_once(e: Known) -> Findings:
    """Each call of a tool and each result is told of once at most, and belongs to an answer that was used."""
    for final in e.evidence.finals:
        told = Counter(_list_told(final))
        for (kind, id_), times in told.items():
            if times > 1:
                yield f"the {kind} {id_} of task {final.number} was told of {times} times", ()
            if not e.is_used(id_):
                yield (
                    f"the {kind} {id_} of task {final.number} was told of, and its answer was not used",
                    (),
                )


def _list_told(final: Final) -> Iterator[tuple[str, str]]:
    """The events of tools in a log: their kinds and ids."""
    for frame in final.log:
        update = frame.said.get("statusUpdate", {}).get("status", {}).get("message", {})
        if TOOLS in update.get("extensions", ()):
            for kind, about in update["parts"][0]["data"].items():
                yield kind, about["id"]


INVARIANTS: dict[str, Callable[[Known], Findings]] = {
    "F1": every_kill_was_made,
    "F2": every_task_was_completed,
    "F3": every_line_was_asked_for,
    "F4": used_answers_are_not_asked_for_again,
    "F5": used_results_are_not_made_again,
    "F6": each_kill_repeats_one_request,
    "F7": each_kill_repeats_calls_of_one_line,
    "F8": calls_are_those_of_the_script,
    "F9": requests_have_the_whole_history,
    "F10": texts_are_whole,
    "F11": streams_are_whole,
    "F12": answers_begin_anew_only_after_a_kill,
    "F13": states_come_once,
    "F14": usage_is_that_of_the_answers,
    "F15": tools_are_told_of_once,
}


def check(evidence: Evidence) -> list[Violation]:
    """All that is violated."""
    known = Known(evidence)
    return [
        Violation(name, text, list(witness))
        for name, invariant in INVARIANTS.items()
        for text, witness in invariant(known)
    ]


def count(evidence: Evidence) -> dict[str, Any]:
    """The figures of an episode."""
    known = Known(evidence)
    return {
        "kills": len(evidence.kills),
        "moments": dict(Counter(kill.kill.rpartition(" of ")[0].partition(" ")[0] for kill in evidence.kills)),
        "requests": len(known.slots),
        "requests again": sum(len(made) - 1 for made in known.slots.values()),
        "whole requests again": sum(
            one.state == "finished" for made in known.slots.values() for one in made[:-1]
        ),
        "calls": len(known.calls),
        "calls again": sum(len(made) - 1 for made in known.calls.values()),
        "whole calls again": sum(one.done > 0 for made in known.calls.values() for one in made[:-1]),
        "pieces": sum("artifactUpdate" in f.said for final in evidence.finals for f in final.log),
        "streams": sum(len({f.stream for f in frames}) for final in evidence.finals for frames in final.seen.values()),
        "tool events": sum(len(list(_list_told(final))) for final in evidence.finals),
    }  # fmt: skip


def find_recoveries(evidence: Evidence) -> list[float]:
    """Seconds from each kill to the next request to the model or call of a tool of its task."""
    moments = [(one.task, one.at) for one in evidence.exchanges]
    moments += [(int(one.call[1 : one.call.index("l")]), one.begun) for one in evidence.executions]
    later = [
        [at - kill.at for task, at in moments if task == kill.task and at > kill.at]
        for kill in evidence.kills
    ]
    return [min(seconds) for seconds in later if seconds]
