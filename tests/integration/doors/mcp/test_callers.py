"""The callers, bounds and records of A2A are those of the door."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_tasks.access.api_keys import issue
from a2a_tasks.models import AuditEntry
from a2a_tasks.store.db import run_in_thread
from tests.integration.bindings.test_observed_requests import samples
from tests.integration.doors.mcp.raw import NEW, OLD, TASKS, ask
from tests.support.budgets import limited

pytestmark = pytest.mark.django_db
ERAS = pytest.mark.parametrize("version", [NEW, OLD])


async def key(**about: Any) -> dict[str, str]:
    return {"x-api-key": (await run_in_thread(lambda: issue("test", **about))).key}


async def call(message: str, headers: dict[str, str], version: str = NEW, **more: Any) -> Any:
    """The answer to a call."""
    params = {"name": "demo", "arguments": {"message": message, **more}}
    return (await ask("tools/call", params, version=version, headers=headers)).json


def text_of(answer: Any) -> str:
    return str(answer["result"]["content"][0]["text"])


@ERAS
async def test_tasks_of_other_callers_do_not_exist(version: str) -> None:
    mine, others = await key(tenant="acme"), await key(tenant="other")
    asked = await call("ask Who?", mine, version)
    task = asked["result"]["_meta"]["a2a-host"]["taskId"]
    refused = await call("Eve", others, version, task=task)
    assert (text_of(refused), refused["result"]["isError"]) == ("Task not found.", True)
    params = {"taskId": f"demo/{task}"}
    for method in ("tasks/get", "tasks/cancel"):
        foreign = await ask(method, params, can=TASKS, headers=others)
        assert foreign.json["error"]["message"] == "Unknown task"
    assert text_of(await call("Ada", mine, version, task=task)) == "Ada"


@ERAS
async def test_equal_calls_of_two_callers_are_two_tasks(version: str) -> None:
    answers = [await call("echo same", await key(), version) for _ in range(2)]
    assert len({each["result"]["_meta"]["a2a-host"]["taskId"] for each in answers}) == 2


@ERAS
async def test_callers_of_a_tenant_share_what_the_agent_shares(settings: Any, version: str) -> None:
    settings.A2A_VISIBILITY = "tenant"
    one, two = await key(tenant="acme"), await key(tenant="acme")
    asked = await call("ask Who?", one, version)
    task = asked["result"]["_meta"]["a2a-host"]["taskId"]
    assert text_of(await call("Bob", two, version, task=task)) == "Bob"


@ERAS
async def test_an_agent_that_is_off_is_no_tool(settings: Any, version: str) -> None:
    settings.A2A_DISABLED_AGENTS = "demo"
    answer = await call("echo x", await key(), version)
    assert answer["error"] == {"code": -32602, "message": "Unknown tool"}
    listed = await ask("tools/list", version=version)
    assert "demo" not in [tool["name"] for tool in listed.json["result"]["tools"]]


@ERAS
async def test_a_host_that_has_too_much_to_do_says_so_in_words(settings: Any, version: str) -> None:
    mine = await key()
    settings.A2A_MAX_WAITING = 0
    busy = await call("echo x", mine, version)
    assert busy["result"]["isError"]
    assert text_of(busy).startswith("Busy; call again in ")


async def test_a_cancel_is_in_the_audit_log() -> None:
    mine = await key()
    asked = await call("ask Who?", mine)
    task = asked["result"]["_meta"]["a2a-host"]["taskId"]
    head = {**mine, "x-request-id": "r-7"}
    await ask("tasks/cancel", {"taskId": f"demo/{task}"}, can=TASKS, headers=head)
    entry = await run_in_thread(lambda: AuditEntry.objects.get(action="task.cancel"))
    assert entry.request == "r-7"


@ERAS
async def test_calls_are_counted_by_the_operation_and_the_door(version: str) -> None:
    mine, before = await key(), samples("a2a_requests_total")
    await call("echo hi", mine, version)
    await call("echo hi", mine, version, data=[])
    await call("echo hi", mine, version, task="nobody's")
    counted = samples("a2a_requests_total") - before
    assert counted == {
        ("SendMessage", "v10", "mcp", "ok"): 1,
        ("SendMessage", "v10", "mcp", "InvalidParams"): 1,
        ("SendMessage", "v10", "mcp", "TaskNotFound"): 1,
    }


@ERAS
async def test_a_spent_budget_is_told_in_words(version: str) -> None:
    async with limited(0, action="refuse"):
        answer = await call("echo x", await key(), version)
    assert answer["result"]["isError"]
    assert "budget" in text_of(answer)
