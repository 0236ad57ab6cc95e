"""The extension of tasks, message by message: handles, polls, answers, cancellations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from a2a_tasks.agents import Turn
from a2a_tasks.models import Task
from a2a_tasks.store.db import run_in_thread
from tests.integration.doors.mcp.raw import ALL, FORM, OLD, TASKS, ask
from tests.journeys.waiting import eventually
from tests.support.agents_under_test import playing, until_stopped

pytestmark = pytest.mark.django_db
BOTH = {**TASKS, **FORM}


async def call(message: str, agent: str = "demo", can: Any = TASKS, **more: Any) -> Any:
    """The result of a call."""
    params = {"name": agent, "arguments": {"message": message, **more}}
    return (await ask("tools/call", params, can=can)).json["result"]


async def get(handle: str, can: Any = BOTH, **more: Any) -> Any:
    """What `tasks/get` returns."""
    return (await ask("tasks/get", {"taskId": handle}, can=can, **more)).json


async def settled(handle: str, status: str, can: Any = BOTH) -> Any:
    """The task once it has a status."""

    async def look() -> Any:
        found = (await get(handle, can))["result"]
        return found if found["status"] == status else None

    return await eventually(look, status)


async def update(handle: str, replies: Any, can: Any = BOTH) -> Any:
    return (await ask("tasks/update", {"taskId": handle, "inputResponses": replies}, can=can)).json


def reply(**content: Any) -> Any:
    return {"action": "accept", "content": content}


async def test_a_short_call_is_answered_and_a_long_one_gets_a_handle() -> None:
    short = await call("echo now")
    assert (short["resultType"], short["content"][0]["text"]) == ("complete", "now")
    handle = await call("sleep 0.3")
    assert (handle["resultType"], handle["status"], handle["pollIntervalMs"]) == (
        "task",
        "working",
        1000,
    )
    assert handle["ttlMs"] is None
    slug, _, task = handle["taskId"].partition("/")
    assert slug == "demo"
    assert await run_in_thread(Task.objects.filter(public_id=task).exists)
    working = (await get(handle["taskId"]))["result"]
    assert (working["status"], working["statusMessage"]) == ("working", "Sleeping 0.3 s")
    done = await settled(handle["taskId"], "completed")
    assert done["resultType"] == "complete"
    assert done["result"]["content"][0]["text"] == "Slept 0.3 s"
    assert done["result"]["_meta"]["a2a-host"]["taskId"] == task


async def test_a_failed_task_is_completed_with_an_error(settings: Any) -> None:
    """`failed` is a word for errors of JSON-RPC."""
    settings.A2A_RETENTION_DAYS = 2
    handle = await call("form", can=BOTH)
    assert handle["ttlMs"] == 172_800_000
    await ask("tools/call", {"name": "demo", "arguments": {"message": "fail x"}})

    async def run(turn: Turn) -> AsyncIterator[Any]:
        await asyncio.sleep(0.2)
        yield turn.fail("no paper")

    with playing(run, slug="failing"):
        failing = await call("x", "failing")
        done = await settled(failing["taskId"], "completed")
    assert done["result"]["isError"]
    assert done["result"]["content"][0]["text"] == "no paper"


async def test_only_clients_that_say_so_in_this_request_get_handles(settings: Any) -> None:
    settings.A2A_MAX_BLOCK_SECONDS = settings.A2A_MCP_OLD_SECONDS = 0.05
    assert (await call("sleep 5"))["resultType"] == "task"
    plain = await call("sleep 6", can=FORM)
    assert (plain["resultType"], plain["isError"]) == ("complete", False)
    params = {"name": "demo", "arguments": {"message": "sleep 7"}}
    old = (await ask("tools/call", params, version=OLD)).json["result"]
    assert "taskId" not in old
    assert "Still working" in old["content"][0]["text"]


async def test_old_versions_have_no_tasks_and_others_must_declare_them() -> None:
    handle = (await call("ask Who?", can=BOTH))["taskId"]
    for method in ("get", "cancel"):
        old = await ask(f"tasks/{method}", {"taskId": handle}, version=OLD)
        assert old.json["error"]["code"] == -32601
        undeclared = await ask(f"tasks/{method}", {"taskId": handle})
        assert (undeclared.status, undeclared.json["error"]["code"]) == (400, -32021)
        needed = undeclared.json["error"]["data"]["requiredCapabilities"]
        assert needed == {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    for method in ("list", "result"):
        unknown = await ask(f"tasks/{method}", {"taskId": handle}, can=BOTH)
        assert unknown.json["error"]["code"] == -32601


async def test_the_name_in_the_head_may_be_missing_and_not_wrong() -> None:
    handle = (await call("ask Who?", can=BOTH))["taskId"]
    assert "result" in await get(handle)
    assert "result" in await get(handle, headers={"mcp-name": handle})
    wrong = await ask("tasks/get", {"taskId": handle}, can=BOTH, headers={"mcp-name": "demo/other"})
    assert (wrong.status, wrong.json["error"]["code"]) == (400, -32020)


@pytest.mark.parametrize("handle", ["demo/none", "nobody/none", "", "demo", "/", "demo/\x00"])
async def test_every_task_that_is_not_there_is_the_same(handle: str) -> None:
    for method in ("get", "cancel"):
        answer = await ask(f"tasks/{method}", {"taskId": handle}, can=BOTH)
        assert answer.json["error"] == {"code": -32602, "message": "Unknown task"}
    answer = await ask("tasks/update", {"taskId": handle, "inputResponses": {}}, can=BOTH)
    assert answer.json["error"] == {"code": -32602, "message": "Unknown task"}


async def test_a_question_is_asked_by_its_key_and_answered_once() -> None:
    handle = (await call("ask Who?", can=BOTH))["taskId"]
    waiting = await settled(handle, "input_required")
    ((key, question),) = waiting["inputRequests"].items()
    assert question["method"] == "elicitation/create"
    assert (question["params"]["mode"], question["params"]["message"]) == ("form", "Who?")
    for ignored in (
        {"qother": reply(answer="x")},
        {key: {"action": "decline"}},
        {key: {"action": "cancel"}},
    ):
        assert "result" in await update(handle, ignored)
        assert (await get(handle))["result"]["status"] == "input_required"
    await asyncio.gather(*(update(handle, {key: reply(answer=name)}) for name in ("Ada", "Bob")))
    done = await settled(handle, "completed")
    assert done["result"]["content"][0]["text"] in {"Ada", "Bob"}
    assert "result" in await update(handle, {key: reply(answer="late")})


async def test_a_form_is_asked_field_by_field_and_its_faults_are_told() -> None:
    handle = (await call("form", can=BOTH))["taskId"]
    ((key, question),) = (await settled(handle, "input_required"))["inputRequests"].items()
    schema = question["params"]["requestedSchema"]
    assert schema["properties"]["people"]["type"] == "integer"
    assert schema["required"] == ["to", "people", "sure"]
    refused = await update(handle, {key: reply(to="Paris", people=1, sure=True)})
    assert refused["error"]["code"] == -32602
    assert "Paris" in refused["error"]["message"]
    assert "result" in await update(handle, {key: reply(to="Rome", people=1, sure=True)})
    done = await settled(handle, "completed")
    assert done["result"]["structuredContent"]["data"] == {"to": "Rome", "people": 1, "sure": True}


async def test_a_client_that_cannot_ask_its_user_gets_the_question_as_text() -> None:
    result = await call("ask Who?")
    assert (result["resultType"], result["isError"]) == ("complete", False)
    assert "Who?\n\nTo answer, call this tool again with task=" in result["content"][0]["text"]
    handle = f"demo/{result['_meta']['a2a-host']['taskId']}"
    done = (await get(handle, TASKS))["result"]
    assert done["status"] == "completed"
    assert done["result"]["content"] == result["content"]


async def test_a_page_for_secrets_is_shown_to_those_who_can_open_it(settings: Any) -> None:
    settings.A2A_PUBLIC_URL = "https://agents.example.com"
    handle = (await call("secret pin", can=ALL))["taskId"]
    waiting = await settled(handle, "input_required", ALL)
    (question,) = waiting["inputRequests"].values()
    assert question["params"]["mode"] == "url"
    assert question["params"]["url"].startswith("https://agents.example.com/handover/")
    without = (await get(handle, BOTH))["result"]
    assert without["status"] == "working"
    assert "/handover/" in without["statusMessage"]


async def test_a_cancelled_task_is_cancelled_and_acknowledged_twice() -> None:
    stopped = asyncio.Event()
    with playing(until_stopped(stopped), slug="busy"):
        handle = (await call("x", "busy"))["taskId"]
        for _ in range(2):
            answer = await ask("tasks/cancel", {"taskId": handle}, can=TASKS)
            assert answer.json["result"]["resultType"] == "complete"
        await asyncio.wait_for(stopped.wait(), 20)
        assert (await get(handle))["result"]["status"] == "cancelled"


async def test_polls_count_in_the_callers_rate(fresh: None, settings: Any) -> None:
    settings.A2A_RATE_PER_CALLER = "2/h"
    handle = (await call("ask Who?", can=BOTH))["taskId"]
    assert "result" in await get(handle)
    busy = await get(handle)
    assert busy["error"]["code"] == -32000
    assert busy["error"]["message"].startswith("Busy; call again in ")


async def test_a_handle_is_followed_by_every_door_of_the_host(client: Any) -> None:
    handle = (await call("ask Who?", can=BOTH))["taskId"]
    task = handle.partition("/")[2]
    body = {"jsonrpc": "2.0", "id": 1, "method": "CancelTask", "params": {"id": task}}
    answer = await client.post("/agents/demo/", body, {"a2a-version": "1.0"})
    assert answer.json["result"]["status"]["state"] == "TASK_STATE_CANCELED"
    assert (await get(handle))["result"]["status"] == "cancelled"
