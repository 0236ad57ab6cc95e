"""Conversations of clients that send the whole history each time: the agent hears each message once."""

from __future__ import annotations

import asyncio
import datetime
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from django.db.models.functions import Now
from pytest_django import Settings

from a2a_doors import hang_ups
from a2a_tasks.agents import Turn
from a2a_tasks.models import ChatPrefix, Task
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.records import REPEAT_SECONDS
from tests.support.agents_under_test import playing
from tests.support.bindings.client import Client
from tests.support.bindings.puppet import Puppet
from tests.support.doors import Chats, user

pytestmark = [pytest.mark.django_db]

FORM = {
    "type": "object",
    "properties": {"amount": {"type": "integer"}, "currency": {"enum": ["EUR", "USD"]}},
    "required": ["amount", "currency"],
}


class Rooms:
    """What an agent has heard, by context."""

    def __init__(self) -> None:
        self.heard: defaultdict[str, list[str]] = defaultdict(list)

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Answer with the number of the message in its context."""
        heard = self.heard[str(turn.message.context_id)]
        heard.append(turn.text)
        if turn.text == "ask":
            yield turn.ask("Which one?")
        elif turn.text == "form":
            yield turn.ask("How much?", form=FORM)
        elif turn.text == "fail":
            yield turn.fail("No.")
        elif answer := await turn.answer:
            yield f"paid {answer['amount']} {answer['currency']}"
        else:
            yield f"{len(heard)}: {turn.text}"


@pytest.fixture
def rooms() -> Iterator[Rooms]:
    """That agent, hosted as `rooms`."""
    made = Rooms()
    with playing(made.run, slug="rooms", default_input_modes=["text/plain", "application/json"]):
        yield made


@pytest.fixture
def chats(client: Client, rooms: Rooms) -> Chats:
    """A front end."""
    return Chats(client, "rooms")


def said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


async def count(model: Any = Task) -> int:
    return int(await run_in_thread(model.objects.count))


class TestAHistoryThatGrows:
    async def test_is_one_context_in_which_each_message_is_heard_once(
        self, chats: Chats, rooms: Rooms
    ) -> None:
        for number in range(1, 21):
            assert await chats.say(f"m{number}") == f"{number}: m{number}"
        assert list(rooms.heard.values()) == [[f"m{number}" for number in range(1, 21)]]
        assert await count(ChatPrefix) == 1

    async def test_is_known_byte_for_byte(self, chats: Chats, rooms: Rooms) -> None:
        for text in (" a\r\n\r\n", "\n\t", "😀 ", "z\u2028"):
            await chats.say(text)
        assert len(rooms.heard) == 1

    async def test_is_known_in_parts_and_with_members_of_the_front_end(
        self, chats: Chats, rooms: Rooms
    ) -> None:
        await chats.say("a")
        for message in chats.history:
            message["content"] = [{"type": "text", "text": message["content"]}]
            message |= {"metadata": {"title": "x"}, "options": None}
        assert await chats.say("b") == "2: b"

    async def test_is_known_whatever_the_instructions_are(self, chats: Chats, rooms: Rooms) -> None:
        for text in "ab":
            chats.history.insert(0, {"role": "system", "content": f"It is {text} o'clock."})
            await chats.say(text)
        assert len(rooms.heard) == 1

    async def test_that_was_streamed_goes_on(self, chats: Chats, rooms: Rooms) -> None:
        async with chats.stream([user("a")]) as stream:
            answer = await stream.to_the_end()
        chats.history = [user("a"), said(answer)]
        assert await chats.say("b") == "2: b"

    async def test_of_two_equal_conversations_goes_on_in_its_own(
        self, chats: Chats, rooms: Rooms
    ) -> None:
        other = Chats(chats.client, "rooms")
        for text in ("hi", "more"):
            await chats.say(text)
            await other.say(text)
        assert list(rooms.heard.values()) == [["hi", "more"], ["hi", "more"]]


class TestAHistoryThatWasChanged:
    async def test_is_a_new_context_with_the_history_as_text(
        self, chats: Chats, rooms: Rooms
    ) -> None:
        for number in range(1, 6):
            await chats.say(f"m{number}")
        edited = [*chats.history[:4], user("other")]
        edited[2] = user("m2, edited")
        await chats.ask(edited)
        first, second = rooms.heard.values()
        assert first == ["m1", "m2", "m3", "m4", "m5"]
        transcript = "user: m1\n\nassistant: 1: m1\n\nuser: m2, edited\n\nassistant: 2: m2"
        assert second == [f"Conversation so far:\n\n{transcript}\nother"]

    async def test_to_be_answered_again_is_no_second_answer_in_the_old_memory(
        self, chats: Chats, rooms: Rooms
    ) -> None:
        await chats.say("a")
        await chats.say("b")
        await chats.ask(chats.history[:-1])
        assert await chats.say("c") == "3: c"
        first, second = rooms.heard.values()
        assert first == ["a", "b", "c"]
        assert second == ["Conversation so far:\n\nuser: a\n\nassistant: 1: a\nb"]

    async def test_by_two_windows_at_once_goes_on_in_one_of_them(
        self, chats: Chats, rooms: Rooms
    ) -> None:
        await chats.say("a")
        await asyncio.gather(*(chats.ask([*chats.history, user(text)]) for text in "bc"))
        first, second = sorted(rooms.heard.values(), key=len, reverse=True)
        assert (len(first), len(second)) == (2, 1)

    async def test_by_a_tool_and_without_a_text_is_taken(self, chats: Chats, rooms: Rooms) -> None:
        call = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}
        tool = {"role": "tool", "content": "42", "tool_call_id": "1"}
        await chats.ask([user("a"), call, tool, user("b")])
        assert list(rooms.heard.values()) == [["Conversation so far:\n\nuser: a\n\ntool: 42\nb"]]


class TestAHeaderThatNamesTheConversation:
    async def test_of_the_front_end_keeps_equal_ones_apart(
        self, chats: Chats, rooms: Rooms
    ) -> None:
        one = Chats(chats.client, "rooms", {"x-openwebui-chat-id": "1"})
        two = Chats(chats.client, "rooms", {"x-openwebui-chat-id": "2"})
        for chat in (one, two):
            await chat.say("hi")
        assert await one.say("one") == "2: one"
        assert await two.say("two") == "2: two"
        assert sorted(rooms.heard.values()) == [["hi", "one"], ["hi", "two"]]

    async def test_is_not_disturbed_by_prompts_for_titles(self, chats: Chats, rooms: Rooms) -> None:
        chat = Chats(chats.client, "rooms", {"x-openwebui-chat-id": "1"})
        await chat.say("a")
        await chat.ask([user("### Task:\nGenerate a title")])
        assert await chat.say("b") == "2: b"

    async def test_may_be_one_that_the_operator_names(
        self, chats: Chats, rooms: Rooms, settings: Settings
    ) -> None:
        settings.A2A_OPENAI_CONTEXT_HEADERS = "X-A, X-B"
        one, two = (Chats(chats.client, "rooms", {"x-b": value}) for value in "12")
        await one.say("hi")
        two.history = one.history[:]
        await two.say("more")
        assert len(rooms.heard) == 2

    async def test_of_a2a_is_the_context_itself(self, chats: Chats, rooms: Rooms) -> None:
        named = Chats(chats.client, "rooms", {"a2a-context-id": "mine"})
        answer = await named.ask([user("a")])
        assert answer.header("a2a-context-id") == "mine"
        await named.ask([user("b")])
        await named.ask([user("a"), said("1: a"), user("c")])
        assert dict(rooms.heard) == {"mine": ["a", "b", "c"]}

    async def test_of_a2a_keeps_equal_ones_apart(self, chats: Chats, rooms: Rooms) -> None:
        one, two = (Chats(chats.client, "rooms", {"a2a-context-id": name}) for name in "12")
        for chat in (one, two):
            await chat.say("hi")
        await one.say("one")
        await two.say("two")
        assert dict(rooms.heard) == {"1": ["hi", "one"], "2": ["hi", "two"]}

    async def test_of_a2a_is_bounded_as_in_a2a(self, chats: Chats) -> None:
        answer = await chats.ask([user("a")], {"a2a-context-id": "x" * 300})
        assert answer.status == 400
        assert "at most 256" in answer.json["error"]["message"]
        assert await count() == 0

    async def test_of_a_new_context_sends_the_history_along(
        self, chats: Chats, rooms: Rooms
    ) -> None:
        named = Chats(chats.client, "rooms", {"a2a-context-id": "mine"})
        await named.ask([user("a"), said("x"), user("b")])
        assert dict(rooms.heard) == {"mine": ["Conversation so far:\n\nuser: a\n\nassistant: x\nb"]}

    async def test_of_a_context_with_a_question_answers_it(
        self, chats: Chats, rooms: Rooms
    ) -> None:
        named = Chats(chats.client, "rooms", {"a2a-context-id": "mine"})
        await named.ask([user("ask")])
        await named.ask([user("this")])
        assert await count() == 1


class TestAQuestion:
    async def test_is_text_and_the_next_message_answers_it(
        self, chats: Chats, rooms: Rooms
    ) -> None:
        assert await chats.say("ask") == "Which one?"
        assert await chats.say("this") == "2: this"
        assert await count() == 1

    async def test_that_was_streamed_is_no_error(self, chats: Chats) -> None:
        async with chats.stream([user("ask")]) as stream:
            assert await stream.to_the_end() == "Which one?"
        assert stream.chunks[-2]["choices"][0]["finish_reason"] == "stop"

    async def test_with_a_form_lists_its_fields(self, chats: Chats) -> None:
        assert (await chats.say("form")).split("\n") == [
            "How much?",
            "",
            "- amount (integer)",
            "- currency: one of EUR, USD",
            "",
            'Answer with JSON, such as {"amount":"...","currency":"..."}',
        ]

    @pytest.mark.parametrize("fence", ["{}", "```json\n{}\n```", "```\n{}```"])
    async def test_with_a_form_is_answered_by_json(self, chats: Chats, fence: str) -> None:
        await chats.say("form")
        answer = fence.replace("{}", '{"amount": 3, "currency": "EUR"}')
        assert await chats.say(answer) == "paid 3 EUR"
        assert await count() == 1

    @pytest.mark.parametrize("stream", [False, True])
    async def test_stands_with_the_faults_of_an_answer_that_does_not_fit(
        self, chats: Chats, stream: bool
    ) -> None:
        await chats.say("form")
        wrong = user('{"amount": "much"}')
        if stream:
            async with chats.stream([*chats.history, wrong]) as streamed:
                text = await streamed.to_the_end()
        else:
            answer = await chats.ask([*chats.history, wrong])
            assert (answer.status, bool(answer.header("a2a-task-id"))) == (200, True)
            text = answer.json["choices"][0]["message"]["content"]
        assert "currency is missing" in text
        assert "'much' is not of type 'integer'" in text
        assert "How much?" in text
        chats.history += [wrong, said(text)]
        assert await chats.say('{"amount": 3, "currency": "EUR"}') == "paid 3 EUR"

    async def test_that_was_answered_elsewhere_is_answered_no_more(
        self, chats: Chats, rooms: Rooms
    ) -> None:
        await chats.say("ask")
        task = await run_in_thread(lambda: Task.objects.get().public_id)
        await chats.client.ask("POST", f"/agents/rooms/tasks/{task}:cancel", b"{}")
        assert await chats.say("this") == "2: this"
        assert await count() == 2
        assert len(rooms.heard) == 1


class TestARepeatedRequest:
    RETRY = {"x-stainless-retry-count": "1"}

    async def test_after_a_failure_gets_it_again(self, chats: Chats, rooms: Rooms) -> None:
        for headers in ({}, {}, self.RETRY):
            assert (await chats.ask([user("fail")], headers)).status == 500
        assert list(rooms.heard.values()) == [["fail"]]

    async def test_by_a_person_after_a_failure_is_a_new_turn(
        self, chats: Chats, rooms: Rooms
    ) -> None:
        for _ in range(2):
            await chats.ask([user("fail")], {"x-stainless-retry-count": "0"})
        assert len(rooms.heard) == 2

    async def test_after_an_answer_is_a_new_turn(self, chats: Chats, rooms: Rooms) -> None:
        for headers in ({}, {}, self.RETRY):
            await chats.ask([user("a")], headers)
        assert len(rooms.heard) == 3

    async def test_after_a_minute_is_a_new_turn(self, chats: Chats, rooms: Rooms) -> None:
        await chats.ask([user("fail")])
        past = Now() - datetime.timedelta(seconds=REPEAT_SECONDS + 1)
        await run_in_thread(ChatPrefix.objects.update, updated_at=past)
        await chats.ask([user("fail")])
        assert len(rooms.heard) == 2

    async def test_joins_the_one_under_way_if_its_client_says_so(
        self, client: Client, puppet: Puppet
    ) -> None:
        chats = Chats(client, "puppet")
        async with chats.stream([user("go")]) as first:
            hand = await puppet.hand()
            hand.say("hello")
            await first.until("hello")
            async with chats.stream([user("go")], self.RETRY) as second:
                await second.until("hello")
                assert (
                    dict(second.exchange.headers)["a2a-task-id"]
                    == dict(first.exchange.headers)["a2a-task-id"]
                )
                hand.end()
                assert await second.to_the_end() == await first.to_the_end() == "hello"
        assert await count() == 1

    async def test_by_somebody_else_is_a_task_of_its_own(
        self, client: Client, puppet: Puppet
    ) -> None:
        chats = Chats(client, "puppet")
        async with chats.stream([user("go")]), chats.stream([user("go")]):
            for _ in range(2):
                (await puppet.hand()).end()
        assert await count() == 2

    async def test_joins_after_the_longest_wait(
        self, client: Client, puppet: Puppet, settings: Settings
    ) -> None:
        settings.A2A_MAX_BLOCK_SECONDS = 0.2
        chats = Chats(client, "puppet")
        answer = await chats.ask([user("go")])
        assert (answer.status, answer.json["error"]["code"]) == (503, "still_working")
        assert answer.header("retry-after")
        hand = await puppet.hand()
        hand.say("done")
        hand.end()
        await hand.ended()
        settings.A2A_MAX_BLOCK_SECONDS = 20.0
        again = await chats.ask([user("go")])
        assert again.json["choices"][0]["message"]["content"] == "done"
        assert await count() == 1


class TestAClientThatLeaves:
    @pytest.fixture(autouse=True)
    def soon(self, settings: Settings) -> None:
        """Cancel soon."""
        settings.A2A_HANG_UP_SECONDS = 0.05

    async def test_stops_the_agent_and_goes_on_with_the_half_text(
        self, client: Client, puppet: Puppet
    ) -> None:
        chats = Chats(client, "puppet")
        async with chats.stream([user("go")]) as stream:
            hand = await puppet.hand()
            hand.say("half")
            await stream.until("half")
        await hand.ended()
        while waiting := set(hang_ups._waiting):
            await asyncio.wait(waiting, timeout=20)
        chats.history = [user("go"), said("half")]
        async with chats.stream([*chats.history, user("on")]) as stream:
            hand = await puppet.hand()
            assert hand.turn.text == "on"
            hand.end()
            await stream.to_the_end()
        states = await run_in_thread(
            lambda: list(Task.objects.order_by("pk").values_list("state", "context"))
        )
        assert [state for state, _ in states] == ["TASK_STATE_CANCELED", "TASK_STATE_COMPLETED"]
        assert len({context for _, context in states}) == 1
