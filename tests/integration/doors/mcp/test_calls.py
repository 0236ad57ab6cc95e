"""`tools/call` with the published client, in both eras."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest
from mcp import Client, MCPError

from a2a_tasks.agents import Turn, data, file
from a2a_tasks.models import Task
from a2a_tasks.store.db import run_in_thread
from tests.support.agents_under_test import playing

pytestmark = pytest.mark.django_db
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Caller:
    """The published client, connected anew for each call."""

    def __init__(self, url: str, mode: Any) -> None:
        self.url, self.mode = url, mode

    async def list_tools(self) -> Any:
        """The list."""
        async with Client(self.url, mode=self.mode) as client:
            return await client.list_tools()

    async def call_tool(self, name: str, arguments: dict[str, Any], **more: Any) -> Any:
        """The result of a call. Raises MCPError."""
        async with Client(self.url, mode=self.mode) as client:
            try:
                return await client.call_tool(name, arguments, **more)
            except MCPError as fault:  # the client would put it into a group
                refused = fault
        raise refused


@pytest.fixture(params=["auto", "legacy"])
def caller(site: str, request: pytest.FixtureRequest) -> Caller:
    """The client as it begins by itself, and with the older handshake."""
    return Caller(f"{site}/mcp", request.param)


def text_of(result: Any) -> str:
    """The text of a result, which every client shows."""
    return str(result.content[0].text)


def ids_of(result: Any) -> Any:
    """What the result says for programs."""
    return result.meta["a2a-host"]


async def count() -> int:
    return await run_in_thread(Task.objects.count)


async def test_the_answer_is_a_text_and_names_task_and_conversation(caller: Caller) -> None:
    assert "demo" in [tool.name for tool in (await caller.list_tools()).tools]
    result = await caller.call_tool("demo", {"message": "echo hello", "data": None, "task": None})
    assert (text_of(result), result.is_error) == ("hello", False)
    assert result.structured_content is None
    ids = ids_of(result)
    assert (ids["agent"], ids["state"]) == ("demo", "completed")
    task = await run_in_thread(
        lambda: Task.objects.select_related("context").get(public_id=ids["taskId"])
    )
    assert task.context.public_id == ids["contextId"]
    again = await caller.call_tool("demo", {"message": "echo more", "context": ids["contextId"]})
    assert ids_of(again)["contextId"] == ids["contextId"]


async def test_data_come_with_the_whole_text(caller: Caller) -> None:
    """Some clients show their models the structured content alone."""
    result = await caller.call_tool("demo", {"message": "data word"})
    assert result.structured_content == {
        "text": text_of(result),
        "data": {"said": "word", "length": 4},
    }
    assert '"said": "word"' in text_of(result)


async def test_files_are_named_in_the_text_and_images_are_there(caller: Caller) -> None:
    """No link of a resource: it ends the run of some clients."""

    async def run(turn: Turn) -> AsyncIterator[Any]:
        yield turn.artifact(
            file(PNG, "dot.png", "image/png"), file(b"\0", "x.bin", "application/x")
        )
        yield turn.artifact(file(b"x" * 100_000, "large.bin", "application/octet-stream"))

    with playing(run, slug="painter"):
        result = await caller.call_tool("painter", {"message": "paint"})
    assert [content.type for content in result.content] == ["text", "image"]
    assert "dot.png (image/png, 70 bytes)" in text_of(result)
    assert "x.bin" in text_of(result)
    assert "[large.bin](http://127.0.0.1" in text_of(result)
    plain = await caller.call_tool("demo", {"message": "file some words"})
    first, second = text_of(plain).split("\n\n")
    assert first == "demo.txt (text/plain, 10 bytes):\nsome words"
    assert second == "[demo.txt](https://example.com/demo.txt)"


@pytest.mark.parametrize("verb", ["fail", "reject"])
async def test_a_failure_is_an_error_with_the_agents_words(caller: Caller, verb: str) -> None:
    result = await caller.call_tool("demo", {"message": f"{verb} no paper"})
    assert (text_of(result), result.is_error) == ("no paper", True)


async def test_an_answer_without_a_text_says_so(caller: Caller) -> None:
    async def run(turn: Turn) -> AsyncIterator[Any]:
        yield turn.working()

    with playing(run, slug="silent"):
        result = await caller.call_tool("silent", {"message": "x"})
    assert text_of(result) == "Done, without a text."


async def test_a_question_is_a_text_and_no_error_and_the_next_call_answers_it(
    caller: Caller,
) -> None:
    asked = await caller.call_tool("demo", {"message": "ask Who are you?"})
    task = ids_of(asked)["taskId"]
    assert not asked.is_error
    assert text_of(asked) == f'Who are you?\n\nTo answer, call this tool again with task="{task}".'
    reminded = await caller.call_tool("demo", {"message": "", "task": task})
    assert text_of(reminded) == text_of(asked)
    answered = await caller.call_tool("demo", {"message": "Ada", "task": task})
    assert (text_of(answered), ids_of(answered)["taskId"]) == ("Ada", task)


async def test_a_form_is_answered_by_data(caller: Caller) -> None:
    asked = await caller.call_tool("demo", {"message": "form"})
    assert "- people (integer): How many people" in text_of(asked)
    task = ids_of(asked)["taskId"]
    with pytest.raises(MCPError, match="people"):
        await caller.call_tool("demo", {"message": "", "data": {"to": "Rome"}, "task": task})
    trip = {"to": "Rome", "people": 2, "sure": True}
    answered = await caller.call_tool("demo", {"message": "", "data": trip, "task": task})
    assert answered.structured_content["data"] == trip


async def test_a_call_that_takes_long_is_told_to_come_again(caller: Caller, settings: Any) -> None:
    settings.A2A_MCP_OLD_SECONDS = settings.A2A_MAX_BLOCK_SECONDS = 0.05
    go = asyncio.Event()

    async def run(turn: Turn) -> AsyncIterator[Any]:
        await go.wait()
        yield "done at last"

    with playing(run, slug="slow"):
        first = await caller.call_tool("slow", {"message": "work"})
        task = ids_of(first)["taskId"]
        assert not first.is_error
        assert (
            text_of(first)
            == f'Still working; call this tool again with task="{task}" to get the answer.'
        )
        go.set()
        settings.A2A_MCP_OLD_SECONDS = settings.A2A_MAX_BLOCK_SECONDS = 20
        for _ in range(2):  # also when it has ended
            last = await caller.call_tool("slow", {"message": "and now?", "task": task})
            assert (text_of(last), ids_of(last)["taskId"]) == ("done at last", task)
    assert await count() == 1


async def test_progress_tells_what_the_agent_says(caller: Caller) -> None:
    told: list[tuple[float, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message))

    await caller.call_tool("demo", {"message": "sleep 0"}, progress_callback=hear)
    words = [message for _, message in told]
    assert words[:2] == ["Sleeping 0 s", "Slept 0 s"]
    assert [number for number, _ in told] == sorted({number for number, _ in told})


async def test_an_equal_call_joins_the_first_and_another_one_does_not(
    caller: Caller, settings: Any
) -> None:
    first = await caller.call_tool("demo", {"message": "echo once"})
    again = await caller.call_tool("demo", {"message": "echo once", "context": None})
    assert ids_of(first) == ids_of(again)
    await caller.call_tool("demo", {"message": "echo twice"})
    assert await count() == 2
    settings.A2A_REPEAT_SECONDS = 0
    assert ids_of(await caller.call_tool("demo", {"message": "echo once"})) != ids_of(first)


@pytest.mark.parametrize("verb", ["fail", "reject"])
async def test_an_equal_call_after_a_failure_is_a_new_attempt(caller: Caller, verb: str) -> None:
    """So is one after a cancel: who stops and asks again wants an answer."""
    for number in (1, 2):
        await caller.call_tool("demo", {"message": f"{verb} x"})
        assert await count() == number


async def test_two_equal_calls_at_once_are_one_task(caller: Caller) -> None:
    both = [caller.call_tool("demo", {"message": "sleep 0.1"}) for _ in range(2)]
    one, two = await asyncio.gather(*both)
    assert ids_of(one) == ids_of(two)
    assert await count() == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "message is missing"),
        ({"message": ""}, "message must not be empty"),
        ({"message": 7}, "message must be a string"),
        ({"message": "x", "data": []}, "data must be an object"),
        ({"message": "x" * 2000}, "message must have at most 1000 bytes"),
    ],
)
async def test_wrong_arguments_name_the_field(
    caller: Caller, settings: Any, arguments: dict[str, Any], words: str
) -> None:
    settings.A2A_MAX_MESSAGE_BYTES = 1000
    with pytest.raises(MCPError, match=words) as refused:
        await caller.call_tool("demo", arguments)
    assert refused.value.code == -32602
    assert await count() == 0


async def test_a_task_that_is_not_there_is_told_to_the_model(caller: Caller) -> None:
    result = await caller.call_tool("demo", {"message": "x", "task": "no-such-task"})
    assert (text_of(result), result.is_error) == ("Task not found.", True)


async def test_an_agent_that_takes_no_data_says_so(caller: Caller) -> None:
    async def run(turn: Turn) -> str:
        return "x"

    with playing(run, slug="texts", default_input_modes=("text/plain",)):
        result = await caller.call_tool("texts", {"message": "x", "data": {"a": 1}})
    assert (text_of(result), result.is_error) == ("The agent does not take application/json.", True)


async def test_an_agent_without_streams_is_called_all_the_same(caller: Caller) -> None:
    async def run(turn: Turn) -> AsyncIterator[Any]:
        yield data({"n": 1})

    with playing(run, slug="plain", streaming=False):
        result = await caller.call_tool("plain", {"message": "x"})
    assert result.structured_content["data"] == {"n": 1}


async def test_a_fault_of_the_host_tells_nothing(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def burst(*_: Any) -> None:
        raise RuntimeError("secret words")

    monkeypatch.setattr("a2a_doors.mcp.calls.make_result", burst)
    with pytest.raises(MCPError, match="Internal error"):
        await caller.call_tool("demo", {"message": "echo x"})


async def test_an_agent_may_answer_without_a_task_and_has_one_here(caller: Caller) -> None:
    result = await caller.call_tool("demo", {"message": "message hello"})
    assert text_of(result) == "hello"
    assert ids_of(result)["state"] == "completed"
