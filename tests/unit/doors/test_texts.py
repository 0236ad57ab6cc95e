"""An answer of A2A as one text, whole and in pieces."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_doors.texts import DONE, Telling, show_form, show_message, show_parts, show_task
from a2a_tasks.protocol.forms import FORM
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import EventKind, LogEvent
from a2a_tasks.protocol.values import (
    Artifact,
    ArtifactUpdate,
    Message,
    Part,
    Raw,
    Role,
    Task,
    TaskState,
    TaskStatus,
)
from tests.support.patterns import MOST_POWER

AT = "2026-11-29T12:00:00.000Z"
FORM_OF_TWO: dict[str, Any] = {
    "type": "object",
    "properties": {
        "amount": {"type": "number", "title": "Amount"},
        "currency": {"enum": ["EUR", "USD"], "default": "EUR"},
    },
    "required": ["amount"],
}


def said(*parts: Part, extensions: tuple[str, ...] = ()) -> Message:
    return Message(message_id="m", role=Role.AGENT, parts=parts, extensions=extensions)


def piece(key: str, *parts: Part | str, append: bool = False, number: int = 2) -> LogEvent:
    whole = tuple(Part(text=part) if isinstance(part, str) else part for part in parts)
    update = ArtifactUpdate(artifact=Artifact(artifact_id=key, parts=whole), append=append)
    return LogEvent(number=number, kind=EventKind.ARTIFACT, body=write(update).decode())


def status(state: TaskState, message: Message | None = None) -> LogEvent:
    about: dict[str, Any] = {"state": state, "timestamp": AT}
    if message is not None:
        about["message"] = message
    body = write({"status": about}).decode()
    return LogEvent(number=9, kind=EventKind.STATUS, body=body, state=state)


def task(*artifacts: Artifact, message: Message | None = None) -> Task:
    return Task(
        id="t",
        context_id="c",
        status=TaskStatus(
            state=TaskState.COMPLETED,
            timestamp=AT,
            message=Raw(write(message)) if message else None,
        ),
        artifacts=[Raw(write(artifact)) for artifact in artifacts],
    )


class TestParts:
    def test_texts_are_one_text(self) -> None:
        assert show_parts([Part(text="a"), Part(text="b\r\n "), Part(text="c")]) == "ab\r\n c"

    def test_data_is_json_between_fences_and_stands_apart(self) -> None:
        shown = show_parts([Part(text="See"), Part(data={"a": 1}), Part(text="so")])
        assert shown == 'See\n\n```json\n{\n  "a": 1\n}\n```\n\nso'

    @pytest.mark.parametrize("value", [None, False, 0, "", []])
    def test_data_that_is_nothing_is_shown(self, value: Any) -> None:
        assert (
            show_parts([Part(data=value)]) == f"```json\n{msgspec.json.encode(value).decode()}\n```"
        )

    def test_a_file_is_a_link(self) -> None:
        part = Part(url="https://x.example/f", filename="a[1].pdf", media_type="application/pdf")
        assert show_parts([part]) == "[a(1).pdf](https://x.example/f)"

    def test_an_image_by_value_is_an_image(self) -> None:
        assert (
            show_parts([Part(raw="aGk=", filename="a.png")])
            == "![a.png](data:image/png;base64,aGk=)"
        )


class TestAWholeTask:
    def test_has_its_artifacts_and_its_last_message(self) -> None:
        first = Artifact(artifact_id="1", parts=(Part(text="one"),))
        second = Artifact(artifact_id="2", parts=(Part(text="two"),))
        assert show_task(task(first, second, message=said(Part(text="end")))) == "one\n\ntwo\n\nend"

    def test_is_never_empty(self) -> None:
        assert show_task(task()) == DONE
        assert show_task(task(Artifact(artifact_id="1", parts=(Part(text=""),)))) == DONE


class TestAQuestionWithAForm:
    def test_lists_the_fields_and_how_to_answer(self) -> None:
        parts = Part(text="How much?"), Part(data={"form": FORM_OF_TWO})
        assert show_message(said(*parts, extensions=(FORM,))).split("\n") == [
            "How much?",
            "",
            "- amount (number): Amount",
            "- currency (optional): one of EUR, USD; EUR if left out",
            "",
            'Answer with JSON, such as {"amount":"...","currency":"..."}',
        ]

    def test_of_one_field_is_answered_by_its_value(self) -> None:
        form = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
        assert show_form(form) == "- ok (boolean)\n\nAnswer with the value alone."

    def test_is_data_in_a_message_that_does_not_name_the_extension(self) -> None:
        assert show_message(said(Part(data={"form": FORM_OF_TWO}))).startswith("```json")


class TestTelling:
    def test_pieces_of_an_artifact_are_told_as_they_come(self) -> None:
        telling = Telling()
        texts = [telling.tell(piece("a", text, append=text != "x")) for text in ("x", " y", "\n")]
        assert texts == ["x", " y", "\n"]
        assert telling.finish() == ""

    def test_another_artifact_and_the_last_message_stand_apart(self) -> None:
        telling = Telling()
        events = [
            piece("a", "one"),
            piece("b", "two"),
            piece("b", "!", append=True),
            status(TaskState.COMPLETED, said(Part(text="end"))),
        ]
        assert [telling.tell(event) for event in events] == ["one", "\n\ntwo", "!", "\n\nend"]

    def test_a_file_between_two_pieces_stands_apart(self) -> None:
        telling = Telling()
        link = Part(url="https://x.example/f", filename="f")
        events = piece("a", "one"), piece("a", link, append=True), piece("a", "two", append=True)
        assert [telling.tell(event) for event in events] == [
            "one",
            "\n\n[f](https://x.example/f)",
            "\n\ntwo",
        ]

    def test_what_a_second_attempt_repeats_is_not_told_twice(self) -> None:
        telling = Telling()
        events = [
            piece("a", "one "),
            piece("a", "two ", append=True),
            piece("a", "on"),
            piece("a", "e two th", append=True),
            piece("a", "ree", append=True),
        ]
        assert [telling.tell(event) for event in events] == ["one ", "two ", "", "th", "ree"]

    def test_an_attempt_that_says_something_else_is_told_from_its_beginning(self) -> None:
        telling = Telling()
        events = piece("a", "one two"), piece("a", "one "), piece("a", "three", append=True)
        assert [telling.tell(event) for event in events] == ["one two", "", "\n\none three"]

    @given(st.text("ab ", min_size=1), st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9))))
    def test_attempts_at_one_text_tell_it_once(
        self, whole: str, attempts: list[tuple[int, int]]
    ) -> None:
        """Each attempt says some pieces of one size; the last one says all at once."""
        telling, told = Telling(), ""
        for size, count in [*attempts, (len(whole), 1)]:
            for number in range(count):
                words = whole[number * size :][:size]
                told += telling.tell(piece("a", words, append=number > 0))
        assert told == whole

    def test_a_long_stream_costs_no_more_for_each_piece_than_a_short_one(self) -> None:
        def tell(count: int) -> float:
            telling, begun = Telling(), time.process_time()
            update = piece("a", "a word or two " * 10, append=True)
            assert all(telling.tell(update) for _ in range(count))
            return time.process_time() - begun

        short = min(tell(8_000) for _ in range(3))
        assert tell(40_000) < short * 5**MOST_POWER

    def test_work_and_failures_tell_nothing(self) -> None:
        telling = Telling()
        message = said(Part(text="no part of the answer"))
        for state in (TaskState.WORKING, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED):
            assert telling.tell(status(state, message)) == ""
        assert not telling.begun

    def test_is_never_without_a_word(self) -> None:
        telling = Telling()
        assert telling.tell(status(TaskState.COMPLETED)) == ""
        assert telling.finish() == DONE
