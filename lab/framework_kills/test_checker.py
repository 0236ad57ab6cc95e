"""The checker finds what it has to find: histories with one thing wrong, and one with nothing wrong."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from lab.framework_kills.cases import Call, Case, Kill, Line, Script, make_case
from lab.framework_kills.checker import INVARIANTS, Known, _remember, check, count
from lab.framework_kills.evidence import (
    Evidence,
    Exchange,
    Execution,
    Final,
    Frame,
    Kept,
    Killed,
)
from lab.framework_kills.talk import JOINING, RESUMING, TOOLS, USAGE
from tests.support.rows import rows

pytestmark = pytest.mark.backend("sqlite")
ASKS = Line(3, calls=(Call("pay"),))
WORKS = Line(2, calls=(Call("note"), Call("look")))
KILL = Kill("word", 2, 1)
CASE = Case("langgraph", "stack", 1, (Script((WORKS, ASKS, Line(2)), (KILL,), "yes"), Script((Line(2),))))  # fmt: skip
#: The requests: task, line, moment. The third one is cut off by the kill at 3.5.
ASKED = ((0, 0, 1.0), (0, 1, 2.0), (0, 2, 3.0), (0, 2, 6.0), (1, 0, 7.0))
CALLED = (("t0l0c0", 1.1), ("t0l0c1", 1.2), ("t0l1c0", 2.5))


def status(state: str, number: int, **more: Any) -> Frame:
    return Frame(0, number, {"statusUpdate": {"status": {"state": f"TASK_STATE_{state}", **more}}})


def piece(number: int, artifact: str, text: str, *, append: bool = False) -> Frame:
    said: dict[str, Any] = {"artifact": {"artifactId": artifact, "parts": [{"text": text}]}}
    return Frame(0, number, {"artifactUpdate": said | ({"append": True} if append else {})})


def tool(number: int, kind: str, id_: str) -> Frame:
    data = {kind: {"id": id_}}
    return status("WORKING", number, message={"extensions": [TOOLS], "parts": [{"data": data}]})


def artifact(name: str, text: str) -> dict[str, Any]:
    return {"artifactId": name, "parts": [{"text": text}]}


def final(number: int, log: list[Frame], texts: list[str], asks: int, usage: Any) -> Final:
    names = ["answer", "answer-2", "answer-3"]
    found = {
        "id": "task",
        "contextId": "context",
        "status": {"state": "TASK_STATE_COMPLETED"},
        "artifacts": [artifact(*pair) for pair in zip(names, texts, strict=False)],
        "history": [{"role": "ROLE_USER"}] * (1 + asks) + [{"role": "ROLE_AGENT"}] * asks,
        "metadata": {USAGE: {"scripted": usage}},
    }
    empty = {"id": "task", "contextId": "context", "status": {"state": "TASK_STATE_SUBMITTED"}}
    first = Frame(1, 1, {"task": empty})
    seen = {RESUMING: [first, *log], JOINING: [first, *(Frame(1, f.number, f.said) for f in log)]}
    return Final(number, found, log, seen)


def sound() -> Evidence:
    """A history with nothing wrong."""
    evidence = Evidence(CASE, kills=[Killed(0, str(KILL), 3.5, 1)])
    evidence.exchanges = [
        Exchange(n, task, line, at, (), n, 1, "left" if n == 3 else "finished")
        for n, (task, line, at) in enumerate(ASKED, 1)
    ]
    evidence.executions = [Execution(n, call, at, at) for n, (call, at) in enumerate(CALLED, 1)]
    known = Known(evidence)
    for exchange in evidence.exchanges:
        exchange.messages = tuple(_remember(known, exchange))
    log = [
        status("WORKING", 2),
        piece(3, "answer", "t0l0e1"),
        piece(4, "answer", " w1", append=True),
        tool(5, "toolCall", "call_1_0"),
        piece(6, "answer-2", "t0l1e2 w1 w2"),
        status("INPUT_REQUIRED", 7),
        piece(8, "answer-3", "t0l2e3"),
        piece(9, "answer-3", "t0l2e4 w1"),
        status("COMPLETED", 10),
    ]
    texts = ["t0l0e1 w1", "t0l1e2 w1 w2", "t0l2e4 w1"]
    used = {"requests": 3, "inputTokens": 1 + 2 + 4, "outputTokens": 3}
    other = [piece(2, "answer", "t1l0e5 w1"), status("COMPLETED", 3)]
    evidence.finals = [
        final(0, log, texts, 1, used),
        final(1, other, ["t1l0e5 w1"], 0, {"requests": 1, "inputTokens": 5, "outputTokens": 1}),
    ]
    stored = base64.b64encode(b"\x93t0l2e4 w1").decode()
    evidence.steps = [
        Kept("task", "tool:note", json.dumps({"urn:a2a-host:usage": {}, "result": "t0l0c0x1"})),
        Kept("task", "checkpoint 1", json.dumps(stored)),
    ]
    return evidence


def test_finds_nothing_where_nothing_is_wrong() -> None:
    assert [str(violation) for violation in check(sound())] == []


def test_counts() -> None:
    figures = count(sound())
    assert (figures["kills"], figures["requests"], figures["requests again"]) == (1, 4, 1)
    assert (figures["calls"], figures["calls again"], figures["tool events"]) == (3, 0, 1)
    assert figures["moments"] == {"word": 1}


def no_kill(e: Evidence) -> None:
    e.kills.clear()


def unplayed(e: Evidence) -> None:
    e.kills[0].kill = "begun 0 of line 0"


def failed(e: Evidence) -> None:
    e.finals[0].found["status"]["state"] = "TASK_STATE_FAILED"


def never_asked(e: Evidence) -> None:
    e.exchanges.pop()


def asked_again(e: Evidence) -> None:
    """The first line is asked for again, though its answer was used."""
    e.exchanges.insert(3, Exchange(9, 0, 0, 5.0, (), 1, 1, "finished"))


def kept_in_vain(e: Evidence) -> None:
    """A step has the answer that was cut off."""
    e.steps.append(Kept("task", "model#3", json.dumps("t0l2e3 w1")))


def executed_again(e: Evidence) -> None:
    e.executions.append(Execution(4, "t0l0c0", 4.0, 4.0))


def two_of_one_kill(e: Evidence) -> None:
    """Because of the one kill two lines are asked for again."""
    e.exchanges.insert(3, Exchange(9, 0, 1, 5.0, (), 1, 1, "finished"))


def calls_of_two_lines(e: Evidence) -> None:
    e.executions += [Execution(4, "t0l0c0", 4.0, 4.0), Execution(5, "t0l1c0", 4.0, 4.0)]


def denied(e: Evidence) -> None:
    script = e.case.tasks[0]
    e.case = Case("langgraph", "stack", 1, (Script(script.lines, script.kills, "no"), e.case.tasks[1]))  # fmt: skip


def forgotten(e: Evidence) -> None:
    """The next task does not know the last answer."""
    messages = e.exchanges[-1].messages
    e.exchanges[-1].messages = (*messages[:-2], messages[-1])


def twice_remembered(e: Evidence) -> None:
    messages = e.exchanges[-1].messages
    e.exchanges[-1].messages = (*messages[:-1], messages[-2], messages[-1])


def doubled(e: Evidence) -> None:
    """The words that were cut off stay, as an artifact of their own."""
    e.finals[0].found["artifacts"].insert(2, artifact("answer-4", "t0l2e3"))


def cut(e: Evidence) -> None:
    e.finals[0].found["artifacts"][1]["parts"] = [{"text": "t0l1e2 w1"}]


def missed(e: Evidence) -> None:
    del e.finals[0].seen[RESUMING][3]


def shown_twice(e: Evidence) -> None:
    frames = e.finals[0].seen[JOINING]
    frames.insert(3, frames[3])


def another_word(e: Evidence) -> None:
    e.finals[0].seen[JOINING][2] = Frame(1, 3, piece(3, "answer", "other").said)


def begun_too_often(e: Evidence) -> None:
    """An answer that was given once is begun twice."""
    e.finals[0].log[4:5] = [piece(6, "answer-2", "t0l1e2"), piece(6, "answer-2", "t0l1e2 w1 w2")]


def asked_twice(e: Evidence) -> None:
    e.finals[0].log.insert(6, status("INPUT_REQUIRED", 7))


def counted_twice(e: Evidence) -> None:
    e.finals[0].found["metadata"][USAGE]["scripted"]["requests"] = 4


def told_twice(e: Evidence) -> None:
    e.finals[0].log.insert(4, tool(5, "toolCall", "call_1_0"))


def told_of_what_was_not_used(e: Evidence) -> None:
    e.finals[0].log[3] = tool(5, "toolCall", "call_3_0")


MISTAKES: tuple[tuple[Callable[[Evidence], None], str], ...] = (
    (no_kill, "F1"),
    (unplayed, "F1"),
    (failed, "F2"),
    (never_asked, "F3"),
    (asked_again, "F4"),
    (kept_in_vain, "F4"),
    (executed_again, "F5"),
    (two_of_one_kill, "F6"),
    (calls_of_two_lines, "F7"),
    (denied, "F8"),
    (forgotten, "F9"),
    (twice_remembered, "F9"),
    (doubled, "F10"),
    (cut, "F10"),
    (missed, "F11"),
    (shown_twice, "F11"),
    (another_word, "F11"),
    (begun_too_often, "F12"),
    (asked_twice, "F13"),
    (counted_twice, "F14"),
    (told_twice, "F15"),
    (told_of_what_was_not_used, "F15"),
)


@rows("mistake", MISTAKES, ids=lambda row: row[0].__name__)
def test_finds(mistake: tuple[Callable[[Evidence], None], str]) -> None:
    spoil, invariant = mistake
    evidence = sound()
    spoil(evidence)
    assert invariant in {violation.invariant for violation in check(evidence)}


def test_each_invariant_is_broken_once() -> None:
    assert {invariant for _, invariant in MISTAKES} == INVARIANTS.keys()


def test_a_seed_is_always_the_same_case() -> None:
    assert make_case("langgraph", 7) == make_case("langgraph", 7) != make_case("langgraph", 8)
