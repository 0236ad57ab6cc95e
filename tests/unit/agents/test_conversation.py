"""The conversation as an agent sees it, on one in memory: what it keeps, refuses, and tells the host."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_tasks.agents import Conversation, Message, Part, Turn
from a2a_tasks.agents import conversation as limits
from a2a_tasks.protocol.values import Role
from tests.support.examples.turns import make_turn
from tests.unit.agents.test_steps import NOT_JSON, PLAIN


def conversation_of(*given: Any, **more: Any) -> Conversation:
    """The conversation of a turn. Needs a running loop."""
    return turn_in(Conversation(*given, **more)).conversation


def turn_in(conversation: Conversation) -> Turn:
    return make_turn("hello", conversation=conversation)


class TestValues:
    @given(PLAIN | st.binary())
    async def test_come_back_as_they_were(self, value: Any) -> None:
        memory = conversation_of().memory
        await memory.set("key", value)
        assert await memory.get("key") == value

    async def test_given_to_a_test_are_there(self) -> None:
        conversation = conversation_of({"a": 1, "b": b"x"}, {"log": [1, {"x": 2}]})
        assert await conversation.memory.get("a") == 1
        assert await conversation.memory.get("b") == b"x"
        assert await conversation.items("log") == [1, {"x": 2}]
        assert conversation.list_changes() is None

    @pytest.mark.parametrize("value", [one for one in NOT_JSON if not isinstance(one, bytes)])
    async def test_that_cannot_be_kept_are_refused(self, value: Any) -> None:
        conversation = conversation_of()
        with pytest.raises(TypeError, match=r"conversation.memory\['key'\].* cannot be stored"):
            await conversation.memory.set("key", value)
        with pytest.raises(TypeError, match=r"an item of 'log'.* cannot be stored"):
            await conversation.append("log", value)

    async def test_are_changed_by_setting_them(self) -> None:
        memory = conversation_of({"a": {"n": 1}}).memory
        (await memory.get("a"))["n"] = 2
        assert await memory.get("a") == {"n": 1}

    @pytest.mark.parametrize("key", ["", "x" * 201, "a\nb"])
    async def test_keys_are_short_and_printable(self, key: str) -> None:
        conversation = conversation_of()
        for use in (
            lambda: conversation.memory.get(key),
            lambda: conversation.memory.set(key, 1),
            lambda: conversation.memory.delete(key),
            lambda: conversation.items(key),
            lambda: conversation.append(key, 1),
            lambda: conversation.pop(key),
            lambda: conversation.clear(key),
        ):
            with pytest.raises(ValueError, match="a key is 1 to 200 printable characters"):
                use()


class TestChanges:
    async def test_are_only_those_that_are_left(self) -> None:
        conversation = conversation_of({"old": 1}, {"log": [1, 2], "other": [1]})
        await conversation.memory.set("new", 1)
        await conversation.memory.delete("new")
        await conversation.memory.delete("never")
        await conversation.append("log", 3)
        assert await conversation.pop("log") == 3
        assert conversation.list_changes() is None
        assert await conversation.pop("log") == 2
        await conversation.append("log", "x")
        await conversation.clear("other")
        await conversation.memory.delete("old")
        changes = conversation.list_changes()
        assert changes is not None
        assert [(c.key, c.expected, c.value) for c in changes.memory] == [("old", 1, None)]
        assert [(c.key, c.kept, c.trims, c.added, c.size) for c in changes.lists] == [
            ("log", 1, True, ('"x"',), 4),
            ("other", 0, True, (), 0),
        ]
        assert changes.size == 3

    async def test_an_empty_append_begins_no_list(self) -> None:
        conversation = conversation_of()
        await conversation.append("log")
        assert conversation.list_changes() is None

    async def test_a_limit_of_items_counts_the_new_ones(self) -> None:
        conversation = conversation_of({}, {"log": [1, 2, 3]})
        await conversation.append("log", 4, 5)
        for limit in range(7):
            assert await conversation.items("log", limit) == [1, 2, 3, 4, 5][5 - min(5, limit) :]


class TestLimits:
    async def test_of_an_item(self) -> None:
        with pytest.raises(ValueError, match="at most 1048576 bytes are in an item of 'log'"):
            await conversation_of().append("log", "x" * limits.MAX_ITEM_BYTES)

    async def test_of_the_bytes_of_a_list(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "MAX_LIST_BYTES", 10)
        conversation = conversation_of({}, {"log": [12345]})
        await conversation.append("log", 67890)
        with pytest.raises(ValueError, match="at most 10 bytes are in the list 'log', not 11"):
            await conversation.append("log", 1)
        await conversation.pop("log")
        await conversation.append("log", 1)

    async def test_of_the_bytes_of_a_turn(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "MAX_CHANGED_BYTES", 10)
        conversation = conversation_of()
        await conversation.memory.set("a", "12345")
        await conversation.append("log", 12345)
        for change in (
            conversation.memory.set("b", "x"),
            conversation.append("log", 1),
            conversation.memory.set("a", "123456"),
        ):
            with pytest.raises(ValueError, match="at most 10 bytes are changed in one turn"):
                await change
        await conversation.memory.set("a", "1234")
        await conversation.memory.set("b", "x")

    async def test_of_keys(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "MAX_KEYS", 4)
        conversation = conversation_of({"a": 1}, {"log": [1]})
        await conversation.memory.set("b", 1)
        await conversation.append("other", 1)
        await conversation.memory.set("a", 2)
        await conversation.append("other", 2)
        for change in (conversation.memory.set("c", "x"), conversation.append("third", 1)):
            with pytest.raises(ValueError, match="at most 4 keys are in the conversation, not 5"):
                await change
        await conversation.memory.delete("b")
        await conversation.memory.set("c", 1)

    async def test_of_keys_is_for_those_that_are_left(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "MAX_KEYS", 2)
        conversation = conversation_of({"a": 1}, {"log": [1]})
        await conversation.clear("log")
        await conversation.append("other", 1)
        with pytest.raises(ValueError, match="at most 2 keys are in the conversation, not 3"):
            await conversation.append("log", 1)
        await conversation.memory.delete("a")
        await conversation.append("log", 1)
        with pytest.raises(ValueError, match="at most 2 keys are in the conversation, not 3"):
            await conversation.memory.set("a", 1)

    @pytest.mark.parametrize("limit", [0, -1, 501])
    async def test_of_a_history(self, limit: int) -> None:
        with pytest.raises(ValueError, match="the limit of a history is 1 to 500"):
            conversation_of().history(limit)


async def test_a_history_given_to_a_test_is_cut_at_its_limit() -> None:
    messages = [Message(message_id=f"{n}", role=Role.USER, parts=(Part(text="x"),)) for n in "123"]
    assert await conversation_of(history=messages).history(2) == messages[1:]
