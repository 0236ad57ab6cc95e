"""The model server of the tests, asked by the official client: it does what the prompt says, and counts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import openai
import pytest

from tests.model_server import ModelServer, serving_model
from tests.support.execution.waiting import until

MODEL = "scripted"
DELTA = "content_block_delta"
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


def user(text: Any) -> Any:
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
        assert not [chunk.usage async for chunk in streamed if chunk.usage]
        streamed = await client.chat.completions.create(
            model=MODEL,
            messages=[user("SAY one two three + CACHED 2")],
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in streamed]
        words = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
        assert [word for word in words if word] == ["one", " two", " three"]
        assert chunks[-1].usage
        assert chunks[-1].usage.completion_tokens == 3
        assert (details := chunks[-1].usage.prompt_tokens_details)
        assert details.cached_tokens == 2

    async def test_it_cuts_a_stream(self, client: openai.AsyncOpenAI) -> None:
        streamed = await client.chat.completions.create(
            model=MODEL, messages=[user("SAY one two + CUT")], stream=True
        )
        with pytest.raises(openai.APIConnectionError):
            [chunk async for chunk in streamed]

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


class TestMessages:
    """Anthropic's client is not installed here; `make lab-frameworks` asks with it."""

    @staticmethod
    async def ask(model: ModelServer, *messages: Any, stream: bool = False) -> httpx.Response:
        """The answer to these messages."""
        request = {"model": MODEL, "messages": list(messages), "stream": stream}
        async with httpx.AsyncClient() as plain:
            return await plain.post(f"{model.url}/messages", json=request)

    async def test_it_counts_the_tokens_of_a_cache_beside_the_input(
        self, model: ModelServer
    ) -> None:
        answer = (await self.ask(model, user("CACHED 2 + WRITTEN 1 + SAY one two"))).json()
        assert answer["content"] == [{"type": "text", "text": "one two"}]
        assert answer["stop_reason"] == "end_turn"
        assert answer["usage"] == {
            "input_tokens": 6,
            "cache_creation_input_tokens": 1,
            "cache_read_input_tokens": 2,
            "output_tokens": 2,
        }

    async def test_its_second_line_answers_the_tool_of_the_first(self, model: ModelServer) -> None:
        asked = user('ID x + CALL add {"a": 1}\nSAY it is $RESULT')
        first = (await self.ask(model, asked)).json()
        (use,) = first["content"]
        assert use == {"type": "tool_use", "id": "x", "name": "add", "input": {"a": 1}}
        result = {"type": "tool_result", "tool_use_id": "x", "content": "7"}
        told = [asked, {"role": "assistant", "content": [use]}, user([result])]
        answer = (await self.ask(model, *told)).json()
        assert answer["content"][0]["text"] == "it is 7"
        assert model.calls_read[-1] == ["x"]

    async def test_it_streams_texts_calls_and_usage(self, model: ModelServer) -> None:
        script = "CACHED 2 + SAY one two + CALL add {}"
        body = (await self.ask(model, user(script), stream=True)).text
        events = [json.loads(line[6:]) for line in body.splitlines() if line.startswith("data: ")]
        texts = [event["delta"].get("text") for event in events if event["type"] == DELTA]
        assert texts == ["one", " two", None]
        begun, ended = events[0]["message"]["usage"], events[-2]["usage"]
        assert (begun["input_tokens"], begun["cache_read_input_tokens"]) == (8, 2)
        assert (ended, events[-1]) == ({"output_tokens": 3}, {"type": "message_stop"})


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
