"""The published `openai` client, which repeats what was refused: one task, whatever it repeats."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2 as httpx
import openai
import pytest
from pytest_django import Settings

from a2a_project.asgi import application
from a2a_tasks.access.api_keys import issue
from a2a_tasks.models import Task
from a2a_tasks.store.db import run_in_thread

pytestmark = [pytest.mark.django_db]
MESSAGES: Any = [{"role": "user", "content": "echo hi"}]


class Wire(httpx.ASGITransport):
    """The host without a socket; it notes the status of each answer."""

    def __init__(self) -> None:
        super().__init__(application)
        self.statuses: list[int] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Pass it on."""
        answer = await super().handle_async_request(request)
        self.statuses.append(answer.status_code)
        return answer


@pytest.fixture
def wire() -> Wire:
    """The way to the host."""
    return Wire()


@pytest.fixture
async def client(wire: Wire) -> AsyncIterator[openai.AsyncOpenAI]:
    """The client with its defaults."""
    key = (await run_in_thread(issue, "test")).key
    http = httpx.AsyncClient(transport=wire, base_url="http://localhost")
    async with openai.AsyncOpenAI(
        api_key=key, base_url="http://localhost/v1", http_client=http
    ) as made:
        yield made


async def count() -> int:
    return await run_in_thread(Task.objects.count)


class TestTheClient:
    async def test_lists_models(self, client: openai.AsyncOpenAI) -> None:
        assert "demo" in [model.id async for model in await client.models.list()]
        assert (await client.models.retrieve("demo")).id == "demo"

    async def test_gets_an_answer_and_its_ids(self, client: openai.AsyncOpenAI) -> None:
        raw = await client.chat.completions.with_raw_response.create(
            model="demo", messages=MESSAGES
        )
        answer = raw.parse()
        assert answer.choices[0].message.content == "hi"
        assert answer.id == f"chatcmpl-{raw.headers['a2a-task-id']}"
        assert answer.usage is not None

    async def test_reads_a_stream(self, client: openai.AsyncOpenAI) -> None:
        options: Any = {"include_usage": True}
        stream = await client.chat.completions.create(
            model="demo", messages=MESSAGES, stream=True, stream_options=options
        )
        chunks = [chunk async for chunk in stream]
        text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        assert (text, chunks[-1].usage is not None) == ("hi", True)

    async def test_that_is_refused_by_a_rate_begins_one_task(
        self, client: openai.AsyncOpenAI, wire: Wire, settings: Settings
    ) -> None:
        settings.A2A_RATE_PER_CALLER = "1/s burst 1"
        await client.models.list()
        await client.chat.completions.create(model="demo", messages=MESSAGES)
        await client.chat.completions.create(model="demo", messages=MESSAGES)
        assert wire.statuses == [200, 200, 429, 200]
        assert await count() == 2

    async def test_that_is_refused_by_a_full_host_begins_one_task(
        self, client: openai.AsyncOpenAI, wire: Wire, settings: Settings
    ) -> None:
        settings.A2A_MAX_WAITING = 0

        async def let_in(_: Any) -> None:
            settings.A2A_MAX_WAITING = 1000

        client._client.event_hooks["response"] = [let_in]
        answer = await client.chat.completions.create(model="demo", messages=MESSAGES)
        assert answer.choices[0].message.content == "hi"
        assert wire.statuses == [503, 200]
        assert await count() == 1

    async def test_does_not_repeat_what_the_agent_failed_at(
        self, client: openai.AsyncOpenAI, wire: Wire
    ) -> None:
        messages: Any = [{"role": "user", "content": "fail"}]
        with pytest.raises(openai.InternalServerError):
            await client.chat.completions.create(model="demo", messages=messages)
        assert wire.statuses == [500]

    async def test_raises_for_a_stream_in_which_the_agent_fails(
        self, client: openai.AsyncOpenAI
    ) -> None:
        messages: Any = [{"role": "user", "content": "fail"}]
        stream = await client.chat.completions.create(model="demo", messages=messages, stream=True)
        with pytest.raises(openai.APIError):
            async for _ in stream:
                pass

    async def test_knows_the_errors(self, client: openai.AsyncOpenAI) -> None:
        with pytest.raises(openai.NotFoundError):
            await client.chat.completions.create(model="nobody", messages=MESSAGES)
        with pytest.raises(openai.BadRequestError) as caught:
            await client.chat.completions.create(model="demo", messages=MESSAGES, n=2)
        assert caught.value.param == "n"
        client.api_key = "sk-1"
        with pytest.raises(openai.AuthenticationError):
            await client.chat.completions.create(model="demo", messages=MESSAGES)
