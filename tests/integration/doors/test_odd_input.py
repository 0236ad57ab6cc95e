"""Odd input at the doors: nothing is an internal error, and what is accepted can be read again."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from pytest_django import Settings

from a2a_doors.texts import read_object
from a2a_tasks.models import Task
from a2a_tasks.store.db import run_in_thread
from tests.integration.doors.mcp.raw import NEW, OLD, TASKS, ask, head_of, message
from tests.support.agents_under_test import playing
from tests.support.bindings.client import Client, Response
from tests.support.doors import user

pytestmark = pytest.mark.django_db

NUL, HALF = "a\0b", "half \ud83d"
TEXTS = ["", NUL, HALF, "\u2028\x85"]
NOT_TEXT: list[Any] = [5, True, None, {}, {"a": 1}, [], [None], [[]], ["x"], [{}], [{"type": []}]]
#: What is no name, and no media type.
NOT_NAMES: list[Any] = [5, [], {}, NUL, HALF]


@pytest.fixture(autouse=True)
def agent(doors: None, settings: Settings) -> Any:
    """An agent that takes everything and says it again."""
    settings.A2A_DOORS = "mcp, openai, ag-ui"

    async def run(turn: Any) -> Any:
        yield turn.text or "nothing"

    with playing(run, slug="takes", default_input_modes=["*/*"]) as made:
        yield made


async def mcp_call(arguments: dict[str, Any]) -> Response:
    """A call of the agent as a tool."""
    return await ask("tools/call", {"name": "takes", "arguments": arguments})


async def accepted_is_readable(client: Client) -> None:
    """All tasks of the agent can be read."""
    for task in await run_in_thread(lambda: list(Task.objects.values_list("public_id", flat=True))):
        answer = await client.get(f"/agents/takes/tasks/{task}", {"a2a-version": "1.0"})
        assert answer.status == 200, answer.body
        assert answer.json["history"]
        answer = await client.get(f"/agents/takes/a2a/0.3/v1/tasks/{task}")
        assert answer.status == 200, answer.body


def assert_no_fault(answer: Response, body: Any, caplog: pytest.LogCaptureFixture) -> None:
    """The host has done nothing wrong."""
    shown = json.dumps(body)[:300]
    assert answer.status < 500, (shown, answer.body)
    assert b"nternal error" not in answer.body, (shown, answer.body[-300:])
    assert b"INTERNAL" not in answer.body, (shown, answer.body[-300:])
    faults = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert not faults, (shown, [record.getMessage() for record in faults])


async def test_of_completions(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    files = [
        {"type": "file", "file": {"file_data": data, "filename": name}}
        for data in ("YQ==", "data:a/b;base64,YQ==", "!!!!")
        for name in NOT_NAMES
    ]
    urls = ("", "data:", "data:image/png;base64,!!!!", 5, None)
    items: list[Any] = [*files, *({"type": "image_url", "image_url": {"url": url}} for url in urls)]
    sounds = ({"data": "YQ==", "format": name} for name in NOT_NAMES)
    items += [{"type": "input_audio", "input_audio": sound} for sound in sounds]
    chats: list[Any] = [[user(content)] for content in (*TEXTS, *NOT_TEXT)]
    chats += [[user([item])] for item in items]
    chats += [[{"role": "assistant", "content": each}, user("a")] for each in NOT_TEXT]
    for messages in chats:
        body = {"model": "takes", "messages": messages}
        assert_no_fault(await client.post("/v1/chat/completions", body), body, caplog)
    await accepted_is_readable(client)


async def test_of_runs(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    sources: list[Any] = [{"type": "data", "value": "YQ==", "mimeType": name} for name in NOT_NAMES]
    sources += [{"type": "data", "value": value} for value in ("!!!!", "", 5)]
    contents = [*TEXTS, *NOT_TEXT, *([{"type": "image", "source": one}] for one in sources)]
    runs: list[Any] = [{"messages": [{"id": "1", "role": "user", "content": c}]} for c in contents]
    said = {"id": "1", "role": "user", "content": "a"}
    runs += [{"messages": [said], name: text} for name in ("threadId", "runId") for text in TEXTS]
    for number, run in enumerate(runs):
        body = {"threadId": f"t{number}", "runId": "r", **run}
        assert_no_fault(await client.post("/agents/takes/ag-ui", body), body, caplog)
    await accepted_is_readable(client)


@pytest.mark.parametrize("id_", ["", ":", ":3", "x", "x:", "x:3", NUL])
@pytest.mark.parametrize("status", ["resolved", "cancelled"])
async def test_of_interrupts_begins_nothing(client: Client, id_: str, status: str) -> None:
    entry = {"interruptId": id_, "status": status, "payload": "a"}
    body = {"threadId": "t", "runId": "r", "messages": [], "resume": [entry]}
    answer = await client.post("/agents/takes/ag-ui", body)
    assert (answer.status, answer.json["error"]["code"]) == (404, "TASK_NOT_FOUND")
    assert await run_in_thread(Task.objects.count) == 0


async def test_that_names_a_task_by_a_text_longer_than_an_id_asks_no_database(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def find(wanted: tuple[Any, str]) -> None:
        asked.append(wanted[1])

    monkeypatch.setattr("a2a_tasks.store.tasks.find_batched", find)
    for name in ("x" * 256, "x" * 257):
        await mcp_call({"message": "a", "task": name})
        await ask("tasks/get", {"taskId": f"takes/{name}"}, can=TASKS)
    assert asked == ["x" * 256] * 2
    entry = {"interruptId": f"{'x' * 257}:1", "status": "cancelled"}
    body = {"threadId": "t", "runId": "r", "messages": [], "resume": [entry]}
    assert (await client.post("/agents/takes/ag-ui", body)).status == 404


async def test_with_many_answers_to_one_question_is_refused() -> None:
    params = {"name": "takes", "arguments": {"message": "a"}, "requestState": "x"}
    for count, words in ((100, "requestState"), (101, "inputResponses")):
        replies = {f"k{n}": {"action": "accept"} for n in range(count)}
        answer = await ask("tools/call", {**params, "inputResponses": replies})
        assert words in answer.json["error"]["message"]


@pytest.mark.parametrize("content", [None, []])
async def test_that_is_empty_begins_nothing(client: Client, content: Any) -> None:
    """A message of A2A has a part at least."""
    said = {"id": "1", "role": "user", "content": content}
    run = {"threadId": "t", "runId": "r", "messages": [said]}
    assert (await client.post("/agents/takes/ag-ui", run)).status == 400
    chat = {"model": "takes", "messages": [said]}
    assert (await client.post("/v1/chat/completions", chat)).status == 400
    assert await run_in_thread(Task.objects.count) == 0


@pytest.mark.parametrize("version", [NEW, OLD])
async def test_of_calls_of_tools(
    client: Client, version: str, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[Any] = [{"message": text} for text in (*TEXTS, *NOT_TEXT)]
    calls += [{"message": "a", name: text} for name in ("context", "task") for text in TEXTS]
    for arguments in calls:
        params = {"name": "takes", "arguments": arguments}
        body = message("tools/call", params, version=version)
        answer = await client.post("/mcp", body, head_of("tools/call", params, version))
        assert_no_fault(answer, body, caplog)
    await accepted_is_readable(client)


@pytest.mark.parametrize(
    "text",
    ['{"a": ' * 100_000, '{"a":' * 100 + "1" + "}" * 100, '{"a": "\\ud83d"}', "[1]", "{", HALF],
)
def test_of_answers_to_forms_is_no_object(text: str) -> None:
    assert read_object(text) is None
