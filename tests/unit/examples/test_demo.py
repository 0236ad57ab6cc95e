"""The demo agent: every word it obeys, and every message id a conformance kit drives it by."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from a2a_tasks.agents import AgentError, Journal, Secrets, Turn, data, file
from a2a_tasks.agents.emission import Chunk, Content, Emission, Reply, StatusUpdate
from a2a_tasks.caller import Caller
from a2a_tasks.protocol.values import UNSET, Part, TaskState, replace
from a2a_tasks.testing import converse
from examples.demo import conformance
from examples.demo.agents import Demo
from examples.kits.agents import Bare, Strict
from tests.support.examples.turns import heard, make_turn
from tests.support.rows import rows


async def said(
    *content: Content, memory: dict[str, Any] | None = None, **about: Any
) -> list[Emission]:
    return await heard(Demo(), make_turn(*content, memory=memory, **about))


def texts(word: Emission) -> list[str]:
    return [part.text for part in word.parts if part.text is not UNSET]


def driven_by(message_id: str, *content: Content) -> Turn:
    turn = make_turn(*content or ("hello",))
    turn.message = replace(turn.message, message_id=message_id)
    return turn


class TestDemo:
    async def test_echoes(self) -> None:
        (word,) = await said("echo hello  world")
        assert isinstance(word, Chunk)
        assert (texts(word), word.append, word.last) == (["hello  world"], False, True)

    async def test_echoes_white_space_as_it_came(self) -> None:
        (word,) = await said("  echo   hello \n")
        assert texts(word) == ["  hello \n"]

    async def test_calls_another_task_of_its_own_and_gives_its_answer(self) -> None:
        (answered,) = await converse(Demo, "call echo x", journal=Journal(answers={"demo": "x"}))
        assert answered.text == "x"

    def test_has_a_fuller_card_for_callers_it_knows(self) -> None:
        caller = Caller(principal="key:alice")
        card = Strict().extended_card({"name": "Strict", "description": "Short."}, caller)
        assert card == {"name": "Strict", "description": "Short. Welcome, key:alice."}

    @rows("count", [1, 2, 20])
    async def test_streams_one_artifact_in_numbered_chunks(self, count: int) -> None:
        words = [word for word in await said(f"chunks {count}") if isinstance(word, Chunk)]
        assert [word.append for word in words] == [False] + [True] * (count - 1)
        assert [word.last for word in words] == [False] * (count - 1) + [True]
        assert len({word.artifact_id for word in words}) == 1
        assert all(f"#{i};" in texts(word)[0] for i, word in enumerate(words))

    async def test_asks_with_a_form_and_shows_the_answer(self) -> None:
        asked, answered = await converse(
            Demo, "form", data({"to": "Rome", "people": 2, "sure": True})
        )
        assert asked.state is TaskState.INPUT_REQUIRED
        assert answered.artifacts["trip"][0].data == {"to": "Rome", "people": 2, "sure": True}
        again = (await converse(Demo, "form", "what?"))[-1]
        assert again.state is TaskState.INPUT_REQUIRED

    async def test_begins_its_chunks_after_a_delay_that_it_announces(self) -> None:
        first, *_ = await said("chunks 2 0.001")
        assert first == StatusUpdate(TaskState.WORKING)

    async def test_counts_by_and_by(self) -> None:
        words = [word for word in await said("count 3 0.001") if isinstance(word, Chunk)]
        assert [texts(word)[0] for word in words] == ["1 ", "2 ", "3 "]
        assert [word.last for word in words] == [False, False, True]

    @rows(
        "text",
        [
            "count",
            "count 0",
            "count 2 x",
            "chunks",
            "chunks 0",
            "chunks x",
            "chunks -1",
            "chunks 100001",
            "sleep",
            "slow x",
        ],
    )
    async def test_tells_what_is_wrong_with_a_number(self, text: str) -> None:
        with pytest.raises(AgentError):
            await said(text)

    @rows("seconds", ["nan", "inf", "-1", "86401"])
    async def test_sleeps_no_odd_time(self, seconds: str) -> None:
        with pytest.raises(AgentError):
            await said(f"sleep {seconds}")

    @rows("verb", ["sleep", "slow"])
    async def test_sleeps_as_working_and_can_be_woken_at_any_moment(self, verb: str) -> None:
        task = asyncio.create_task(said(f"{verb} 3600"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        first, last = await said(f"{verb} 0")
        assert isinstance(first, StatusUpdate)
        assert first.state is TaskState.WORKING
        assert isinstance(last, Chunk)

    @rows(
        ("verb", "state"),
        [
            ("ask", TaskState.INPUT_REQUIRED),
            ("auth", TaskState.AUTH_REQUIRED),
            ("reject", TaskState.REJECTED),
            ("fail", TaskState.FAILED),
        ],
    )
    async def test_ends_its_turn_as_told(self, verb: str, state: TaskState) -> None:
        (word,) = await said(f"{verb} because")
        assert isinstance(word, StatusUpdate)
        assert word.state is state
        assert "because" in texts(word)[0]

    @rows("verb", ["ask", "auth"])
    async def test_takes_the_next_message_for_the_answer(self, verb: str) -> None:
        memory: dict[str, Any] = {}
        await said(f"{verb} name", memory=memory)
        (word,) = await said("echo is no order now", memory=memory)
        assert isinstance(word, Chunk)
        assert texts(word) == ["echo is no order now"]
        assert memory == {}

    async def test_asks_to_be_handed_a_secret_and_tells_only_how_long_it_is(self) -> None:
        memory: dict[str, Any] = {}
        (asked,) = await said("secret token", memory=memory)
        assert isinstance(asked, StatusUpdate)
        assert (asked.state, asked.hand_over) == (TaskState.AUTH_REQUIRED, ("token",))
        handed = Secrets({"token": "four"})
        *_, told = await said("Handed over: token.", memory=memory, secrets=handed)
        assert texts(told) == ["token has 4 characters"]

    async def test_replies_directly(self) -> None:
        assert await said("message hi") == [Reply((Part(text="hi"),))]

    async def test_sends_a_file_by_value_and_one_by_reference(self) -> None:
        by_value, by_reference = await said("file")
        assert by_value.parts[0].filename == "demo.txt"
        assert by_reference.parts[0].url == "https://example.com/demo.txt"

    async def test_sends_data(self) -> None:
        (word,) = await said("data hello")
        assert word.parts[0].data == {"said": "hello", "length": 5}

    async def test_gives_anything_else_back_whatever_its_kind(self) -> None:
        parts = (Part(data=[1, None]), file(b"\x00", "x.bin", "application/octet-stream"))
        (word,) = await said(*parts)
        assert word.parts[1:] == parts

    def test_comes_bare_and_strict(self) -> None:
        assert not Bare().streaming
        assert [extension.required for extension in Strict().extensions] == [True]
        assert {Bare.slug, Strict.slug, Demo.slug} == {"bare", "strict", "demo"}


class TestConformance:
    @pytest.mark.parametrize("prefix", [prefix for prefix, _ in conformance.SCRIPTS])
    async def test_every_prefix_is_obeyed_as_message_id_and_as_text(
        self, prefix: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(conformance, "LONG_SECONDS", 0.0)
        by_id = await heard(Demo(), driven_by(f"{prefix}-1f3-jsonrpc"))
        by_text = await heard(Demo(), make_turn(f"{prefix} please"))
        assert by_id == by_text
        assert by_id

    async def test_a_text_of_many_turns_asks_until_it_is_done(self) -> None:
        """ACTS drives by texts, the 1.0 kit by message ids."""
        memory: dict[str, Any] = {}
        for text in ("tck-multi-turn please", "echo more", "not done"):
            (word,) = await said(text, memory=memory)
            assert isinstance(word, StatusUpdate)
            assert word.state is TaskState.INPUT_REQUIRED
        (word,) = await said("done", memory=memory)
        assert isinstance(word, StatusUpdate)
        assert word.state is TaskState.COMPLETED
        (word,) = await said("echo x", memory=memory)
        assert isinstance(word, Chunk)

    async def test_a_long_task_ends_with_an_artifact(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(conformance, "LONG_SECONDS", 1.0)
        *_, artifact, end = await heard(Demo(), make_turn("tck-long-running"))
        assert isinstance(end, StatusUpdate)
        assert (texts(artifact), end.state) == (["Generated text content"], TaskState.COMPLETED)

    @rows(
        ("message_id", "part"),
        [
            ("tck-artifact-text-1", Part(text="Generated text content")),
            ("tck-artifact-data-1", Part(data={"key": "value", "count": 42})),
            (
                "tck-artifact-file-url-1",
                Part(
                    url="https://example.com/output.txt",
                    filename="output.txt",
                    media_type="text/plain",
                ),
            ),
        ],
    )
    async def test_artifacts_are_the_kits_own(self, message_id: str, part: Part) -> None:
        (word,) = await heard(Demo(), driven_by(message_id))
        assert word.parts == (part,)

    async def test_a_file_is_named_and_typed_as_the_kit_wants(self) -> None:
        (word,) = await heard(Demo(), driven_by("tck-artifact-file-1"))
        assert (word.parts[0].filename, word.parts[0].media_type) == ("output.txt", "text/plain")

    async def test_completes_with_the_kits_greeting(self) -> None:
        (word,) = await heard(Demo(), driven_by("tck-complete-task-1"))
        assert texts(word) == ["Hello from TCK"]

    async def test_replies_directly(self) -> None:
        (word,) = await heard(Demo(), driven_by("tck-message-response-1"))
        assert word == Reply((Part(text="Direct message response"),))

    async def test_streams_working_then_one_artifact(self) -> None:
        first, second = await heard(Demo(), driven_by("tck-stream-001-1"))
        assert first == StatusUpdate(TaskState.WORKING)
        assert isinstance(second, Chunk)

    async def test_works_long_enough_to_be_watched_and_says_so_meanwhile(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert conformance.LONG_SECONDS >= 8  # twice the kit's own timeout of 4 s
        monkeypatch.setattr(conformance, "LONG_SECONDS", 1.0)
        monkeypatch.setattr(asyncio, "sleep", lambda seconds: _at_once())
        words = await heard(Demo(), driven_by("test-resubscribe-message-id-1"))
        states = [word.state for word in words if isinstance(word, StatusUpdate)]
        assert states == [TaskState.WORKING, TaskState.WORKING, TaskState.COMPLETED]


async def _at_once() -> None:
    """Time that passes at once."""
