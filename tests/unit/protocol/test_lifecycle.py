"""The life of a task: every edge of the table, every edge that is not there, and the algebra of folding."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_tasks.protocol.lifecycle import (
    INTERRUPTED,
    TERMINAL,
    TRANSITIONS,
    EventKind,
    IllegalTransition,
    LogEvent,
    advance,
    assemble,
    fold,
)
from a2a_tasks.protocol.values import UNSET, Raw, Task, TaskState, TaskStatus
from tests.support.rows import rows

S = TaskState
ACTIVE = [S.SUBMITTED, S.WORKING, S.INPUT_REQUIRED, S.AUTH_REQUIRED]
ENDED = [S.COMPLETED, S.FAILED, S.CANCELED, S.REJECTED]
#: Written out by hand: what an active task may become, whatever the table says.
NEXT = [S.WORKING, S.INPUT_REQUIRED, S.AUTH_REQUIRED, *ENDED]
EDGES = list(itertools.product(ACTIVE, NEXT))
NON_EDGES = [pair for pair in itertools.product(S, S) if pair not in EDGES]
START = Task(
    id="t1",
    context_id="c1",
    status=TaskStatus(state=S.SUBMITTED, timestamp="2026-01-01T00:00:00.000Z"),
)


def status(number: int, state: TaskState, message: dict[str, Any] | None = None) -> LogEvent:
    """A status event, as the log has it."""
    said: dict[str, Any] = {
        "state": state.value,
        "timestamp": f"2026-01-01T00:00:{number:02d}.000Z",
    }
    if message is not None:
        said["message"] = message
    return LogEvent(
        number=number, kind=EventKind.STATUS, body=json.dumps({"status": said}), state=state
    )


def chunk(number: int, artifact: str, *texts: str, append: bool = False, **about: Any) -> LogEvent:
    """An artifact event, as the log has it."""
    parts = [{"text": text} for text in texts]
    body: dict[str, Any] = {"artifact": {"artifactId": artifact, "parts": parts, **about}}
    if append:
        body["append"] = True
    return LogEvent(number=number, kind=EventKind.ARTIFACT, body=json.dumps(body))


def message(number: int, text: str, kind: EventKind = EventKind.INPUT) -> LogEvent:
    """A message event, as the log has it."""
    body = json.dumps({"messageId": f"m{number}", "role": "ROLE_USER", "parts": [{"text": text}]})
    return LogEvent(number=number, kind=kind, body=body)


def plain(task: Task) -> Any:
    """The task as a client would parse it."""
    return json.loads(json.dumps(_members(task)))


def _members(task: Task) -> dict[str, Any]:
    def parsed(raws: Any) -> Any:
        return None if raws is UNSET else [json.loads(bytes(raw)) for raw in raws]

    said = task.status.message
    return {
        "state": task.status.state,
        "at": task.status.timestamp,
        "said": None if said is None else json.loads(bytes(said)),
        "artifacts": parsed(task.artifacts),
        "history": parsed(task.history),
    }


class TestTheTable:
    def test_has_a_row_for_every_state(self) -> None:
        assert set(TRANSITIONS) == set(TaskState)

    def test_calls_a_state_terminal_or_interrupted_or_neither(self) -> None:
        assert sorted(TERMINAL) == sorted(ENDED)
        assert sorted(INTERRUPTED) == [S.AUTH_REQUIRED, S.INPUT_REQUIRED]
        assert not TERMINAL & INTERRUPTED

    @rows(("state", "to"), EDGES)
    def test_has_this_edge(self, state: TaskState, to: TaskState) -> None:
        assert advance(state, to) is to

    @rows(("state", "to"), NON_EDGES)
    def test_has_no_other_edge(self, state: TaskState, to: TaskState) -> None:
        with pytest.raises(IllegalTransition) as caught:
            advance(state, to)
        assert (caught.value.state, caught.value.to) == (state, to)

    def test_lets_nothing_follow_a_terminal_state(self) -> None:
        assert all(not TRANSITIONS[state] for state in TERMINAL)

    def test_lets_nothing_become_submitted_again(self) -> None:
        assert all(S.SUBMITTED not in row for row in TRANSITIONS.values())

    def test_reaches_every_state_from_the_first(self) -> None:
        assert TRANSITIONS[S.SUBMITTED] | {S.SUBMITTED} == set(TaskState)

    @given(st.lists(st.sampled_from(list(TaskState)), max_size=30))
    def test_is_never_left_by_a_random_walk(self, wishes: list[TaskState]) -> None:
        state, ended = S.SUBMITTED, False
        for wish in wishes:
            try:
                state = advance(state, wish)
            except IllegalTransition:
                assert wish not in TRANSITIONS[state]
                continue
            assert not ended, "something followed a terminal state"
            ended = state in TERMINAL

    def test_speaks_of_states_as_people_do(self) -> None:
        assert str(IllegalTransition(S.COMPLETED, S.INPUT_REQUIRED)) == (
            "a task that is completed cannot become input-required"
        )


class TestFolding:
    def test_nothing_changes_nothing(self) -> None:
        assert fold(START, []) == START

    def test_keeps_the_last_status_only(self) -> None:
        after = fold(START, [status(2, S.WORKING, {"messageId": "a"}), status(3, S.COMPLETED)])
        assert plain(after)["state"] == S.COMPLETED
        assert plain(after)["at"] == "2026-01-01T00:00:03.000Z"
        assert plain(after)["said"] is None

    def test_keeps_the_message_of_the_last_status(self) -> None:
        after = fold(START, [status(2, S.INPUT_REQUIRED, {"messageId": "a", "parts": []})])
        assert plain(after)["said"] == {"messageId": "a", "parts": []}

    def test_puts_messages_into_the_history_in_order(self) -> None:
        after = fold(START, [message(1, "one"), message(2, "two", EventKind.MESSAGE)])
        assert [m["parts"][0]["text"] for m in plain(after)["history"]] == ["one", "two"]

    def test_leaves_out_what_is_told_of_tools(self) -> None:
        told = msgspec.structs.replace(status(2, S.WORKING), kind=EventKind.TOOL, state=None)
        assert fold(START, [told]) == START

    def test_leaves_history_and_artifacts_absent_when_there_are_none(self) -> None:
        after = fold(START, [status(2, S.WORKING)])
        assert after.history is UNSET
        assert after.artifacts is UNSET

    def test_does_not_change_the_task_it_was_given(self) -> None:
        begun = fold(START, [chunk(2, "a", "1"), message(3, "x")])
        before = plain(begun)
        fold(begun, [chunk(4, "a", "2", append=True), message(5, "y"), status(6, S.FAILED)])
        assert plain(begun) == before


class TestArtifacts:
    def texts(self, *events: LogEvent) -> dict[str, list[str]]:
        """The texts of each artifact after the events."""
        found = assemble([event.body for event in events])
        return {
            key: [part["text"] for part in json.loads(body)["parts"]] for key, body in found.items()
        }

    def test_are_created_by_their_first_piece(self) -> None:
        assert self.texts(chunk(1, "a", "x", "y")) == {"a": ["x", "y"]}

    def test_grow_by_appended_pieces(self) -> None:
        grown = self.texts(chunk(1, "a", "x"), chunk(2, "a", "y", append=True))
        assert grown == {"a": ["x", "y"]}

    def test_are_replaced_by_a_piece_that_does_not_append(self) -> None:
        assert self.texts(chunk(1, "a", "x"), chunk(2, "a", "y")) == {"a": ["y"]}

    def test_keep_their_place_when_replaced(self) -> None:
        order = self.texts(chunk(1, "a", "x"), chunk(2, "b", "y"), chunk(3, "a", "z"))
        assert list(order) == ["a", "b"]

    def test_are_created_by_an_appended_piece_of_an_unknown_one(self) -> None:
        assert self.texts(chunk(1, "a", "x", append=True)) == {"a": ["x"]}

    def test_keep_what_their_first_piece_said_of_them(self) -> None:
        first = chunk(1, "a", "x", name="A", description="d", metadata={"k": 1}, extensions=["u"])
        (body,) = assemble([first.body, chunk(2, "a", "y", append=True).body]).values()
        whole = json.loads(body)
        assert whole.pop("parts") == [{"text": "x"}, {"text": "y"}]
        assert whole == {
            "artifactId": "a",
            "name": "A",
            "description": "d",
            "metadata": {"k": 1},
            "extensions": ["u"],
        }

    def test_never_carry_the_flags_of_their_pieces(self) -> None:
        event = chunk(1, "a", "x", append=True)
        (body,) = assemble([event.body]).values()
        assert json.loads(body).keys() == {"artifactId", "parts"}

    def test_go_on_from_known_ones(self) -> None:
        known = Raw(b'{"artifactId":"a","parts":[{"text":"x"}]}')
        (body,) = assemble([chunk(1, "a", "y", append=True).body], [known]).values()
        assert [part["text"] for part in json.loads(body)["parts"]] == ["x", "y"]


_texts = st.lists(st.text(st.characters(codec="utf-8"), max_size=5), min_size=1, max_size=3)
_event = st.one_of(
    st.builds(
        lambda artifact, texts, append: ("chunk", artifact, texts, append),
        st.sampled_from("abc"),
        _texts,
        st.booleans(),
    ),
    st.builds(lambda state: ("status", state), st.sampled_from(list(TaskState))),
    st.builds(lambda text: ("message", text), st.text(st.characters(codec="utf-8"), max_size=5)),
)


def _numbered(said: Iterable[tuple[Any, ...]]) -> list[LogEvent]:
    events = []
    for number, what in enumerate(said, 1):
        match what:
            case ("chunk", artifact, texts, append):
                events.append(chunk(number, artifact, *texts, append=append))
            case ("status", state):
                events.append(status(number, state))
            case ("message", text):
                events.append(message(number, text))
    return events


class TestTheAlgebra:
    @given(st.lists(_event, max_size=12), st.data())
    def test_folding_in_pieces_is_folding_in_one_go(
        self, said: list[tuple[Any, ...]], data: st.DataObject
    ) -> None:
        events = _numbered(said)
        cut = data.draw(st.integers(0, len(events)))
        pieces = fold(fold(START, events[:cut]), events[cut:])
        assert plain(pieces) == plain(fold(START, events))

    @given(st.lists(_event, max_size=12))
    def test_folding_one_by_one_is_folding_in_one_go(self, said: list[tuple[Any, ...]]) -> None:
        events = _numbered(said)
        task = START
        for event in events:
            task = fold(task, [event])
        assert plain(task) == plain(fold(START, events))
