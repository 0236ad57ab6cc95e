"""The model server of the tests, asked by the official client: it does what the prompt says, and counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import openai
import pytest

from tests.model_server import ModelServer, serving_model
from tests.support.execution.waiting import until

MODEL = "scripted"
TOOLS: Any = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    """A model server."""
    with serving_model() as server:
        yield server


@pytest.fixture
async def client(model: ModelServer) -> AsyncIterator[openai.AsyncOpenAI]:
    """A client that asks once."""
    made = openai.AsyncOpenAI(base_url=model.url, api_key="none", max_retries=0, timeout=30)
    async with made:
        yield made


def user(text: str) -> Any:
    """A message of the user."""
    return {"role": "user", "content": text}


async def chat(client: openai.AsyncOpenAI, *messages: Any) -> Any:
    """The message that answers these."""
    answer = await client.chat.completions.create(model=MODEL, messages=list(messages), tools=TOOLS)
    return answer.choices[0].message


class TestChatCompletions:
    async def test_it_says_what_it_is_told(self, client: openai.AsyncOpenAI) -> None:
        answer = await client.chat.completions.create(model=MODEL, messages=[user("SAY one two")])
        assert answer.choices[0].message.content == "one two"
        assert answer.choices[0].finish_reason == "stop"
        assert answer.usage
        assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (3, 2)

    async def test_it_streams_word_by_word(self, client: openai.AsyncOpenAI) -> None:
        streamed = await client.chat.completions.create(
            model=MODEL, messages=[user("SAY one two three")], stream=True
        )
        chunks = [chunk async for chunk in streamed]
        words = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
        assert [word for word in words if word] == ["one", " two", " three"]
        assert chunks[-1].usage
        assert chunks[-1].usage.completion_tokens == 3

    async def test_its_second_line_answers_the_tool_of_the_first(
        self, client: openai.AsyncOpenAI
    ) -> None:
        asked = user('SAY wait + CALL add {"a": 1}\nSAY it is $RESULT for $USERS')
        first = await chat(client, asked)
        (call,) = first.tool_calls
        assert (first.content, call.function.name, call.function.arguments) == (
            "wait",
            "add",
            '{"a": 1}',
        )
        result = {"role": "tool", "tool_call_id": call.id, "content": "7"}
        assert (await chat(client, asked, first, result)).content == "it is 7 for 1"

    async def test_calls_are_streamed(self, client: openai.AsyncOpenAI) -> None:
        streamed = await client.chat.completions.create(
            model=MODEL, messages=[user("CALL add {} + CALL add {}")], tools=TOOLS, stream=True
        )
        deltas = [c.choices[0].delta async for c in streamed if c.choices]
        calls = [call for delta in deltas for call in delta.tool_calls or ()]
        assert [(call.index, call.function and call.function.name) for call in calls] == [
            (0, "add"),
            (1, "add"),
        ]

    async def test_any_other_prompt_is_said_again(self, client: openai.AsyncOpenAI) -> None:
        assert (await chat(client, user("hello"))).content == "You said: hello"


class TestResponses:
    async def test_it_says_what_it_is_told(self, client: openai.AsyncOpenAI) -> None:
        answer = await client.responses.create(model=MODEL, input="SAY one two")
        assert (answer.output_text, answer.status) == ("one two", "completed")
        assert answer.usage
        assert answer.usage.total_tokens == 5

    async def test_it_streams_text_and_calls_which_its_next_line_follows(
        self, client: openai.AsyncOpenAI
    ) -> None:
        given: Any = [user('SAY let me see + CALL add {"a": 1}\nSAY it is $RESULT')]
        async with client.responses.stream(model=MODEL, input=given) as stream:
            words = [e.delta async for e in stream if e.type == "response.output_text.delta"]
            answer = await stream.get_final_response()
        assert words == ["let", " me", " see"]
        message, call = answer.output
        assert (message.type, call.type) == ("message", "function_call")
        assert call.type == "function_call"
        assert (call.name, call.arguments) == ("add", '{"a": 1}')
        given += [message.model_dump(), call.model_dump()]
        given.append({"type": "function_call_output", "call_id": call.call_id, "output": "7"})
        assert (await client.responses.create(model=MODEL, input=given)).output_text == "it is 7"


class TestTrouble:
    async def test_it_fails_as_often_as_it_is_told(
        self, model: ModelServer, client: openai.AsyncOpenAI
    ) -> None:
        patient = client.with_options(max_retries=2)
        before = len(model.exchanges)
        assert (await chat(patient, user("FAIL 429 1 + SAY then"))).content == "then"
        assert [one.state for one in model.exchanges[before:]] == ["failed", "finished"]
        with pytest.raises(openai.InternalServerError):
            await chat(client, user("FAIL 500"))

    async def test_garbage_has_no_choices(self, client: openai.AsyncOpenAI) -> None:
        answer = await client.chat.completions.create(model=MODEL, messages=[user("GARBAGE")])
        assert not answer.choices

    async def test_a_client_that_leaves_is_noted(
        self, model: ModelServer, client: openai.AsyncOpenAI
    ) -> None:
        waiting = asyncio.create_task(chat(client, user("NEVER")))
        await until(lambda: model.of("running"))
        waiting.cancel()
        await until(lambda: not model.of("running"))
        assert model.exchanges[-1].state == "left"

    async def test_at_wait_it_waits_until_it_is_released(self, client: openai.AsyncOpenAI) -> None:
        with serving_model() as other:
            there = client.with_options(base_url=other.url)
            streamed = await there.chat.completions.create(
                model=MODEL, messages=[user("SLOW 0.01 + SAY one WAIT two")], stream=True
            )
            words = (c.choices[0].delta.content async for c in streamed if c.choices)
            assert [await anext(words), await anext(words)] == ["", "one"]
            assert [one.state for one in other.exchanges] == ["running"]
            other.release()
            assert "".join([word or "" async for word in words]) == " two"
            await until(lambda: other.of("finished"))


async def test_its_counts_are_those_of_its_clients(client: openai.AsyncOpenAI) -> None:
    with serving_model() as other:
        there = client.with_options(base_url=other.url)
        for _ in range(2):
            await chat(there, user("SAY one two"))
        async with httpx.AsyncClient() as plain:
            counts = (await plain.get(other.url.replace("/v1", "/counts"))).json()
        assert (counts["requests"], counts["input_tokens"], counts["output_tokens"]) == (2, 6, 4)
        assert counts["exchanges"] == other.counts["exchanges"]
        assert {one["prompt"] for one in counts["exchanges"]} == {"SAY one two"}
