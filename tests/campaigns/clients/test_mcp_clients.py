"""Published clients of MCP at the host's door, each in an environment of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.campaigns.clients.programs.environments import NODE, Unavailable
from tests.campaigns.clients.published import Client, Say, Told
from tests.integration.doors.mcp.raw import TASKS, head_of, message
from tests.journeys.hosts import Host, host

#: The first run makes the environments.
pytestmark = pytest.mark.timeout(1200)
MCP = ("MCP",)
#: What every framework is asked.
SHOWN = ("calls", "shows_files", "shows_data", "asks_in_words", "fails")
KNOWN = {
    Client("mcp_fastmcp.py", "2026-07-28", MCP): (
        *("lists", "calls", "streams", "polls", "follows", "cancels", "fails"),
        *("asks", "asks_in_words"),
    ),
    Client("mcp_old.py", "2025-11-25", MCP): (
        *("calls", "fails", "asks_in_words"),
        *(f"{check}_in_langchain" for check in SHOWN),
    ),
    Client("mcp_js.mjs", "2025-11-25", MCP): ("lists", "calls", "streams", "cancels"),
    Client("mcp_strands.py", "2026-07-28", MCP): SHOWN,
    Client("mcp_agent_framework.py", "2026-07-28", MCP): SHOWN,
    Client("mcp_adk.py", "2025-11-25", MCP): SHOWN,
}


@pytest.fixture(scope="module")
def one(emptied: None) -> Iterator[Host]:
    """A host with the door. Calls with a progress handler of the older clients end before they give up."""
    with host({"A2A_DOORS": "mcp"}) as made:
        yield made


@pytest.fixture(scope="module")
def told(one: Host, say: Say) -> dict[Client, Told]:
    """What went wrong with each client."""
    return {known: _talk(known, checks, one, say) for known, checks in KNOWN.items()}


def _talk(known: Client, checks: tuple[str, ...], one: Host, say: Say) -> Told:
    if known.javascript and NODE:
        return {}
    try:
        return known.converse(say, checks, f"{one.here}/mcp")
    except Unavailable as why:
        return dict.fromkeys([("MCP", check) for check in checks], str(why))


def excused(known: Client) -> list[pytest.MarkDecorator]:
    """On a machine without node: not run, and shown among the results."""
    return [pytest.mark.xfail(run=False, reason=NODE)] if known.javascript and NODE else []


@pytest.mark.parametrize(
    ("known", "check"),
    [
        pytest.param(known, check, id=f"{known.script} {check}", marks=excused(known))
        for known, checks in KNOWN.items()
        for check in checks
    ],
)
def test_a_known_client_does_what_it_can(
    told: dict[Client, Told], known: Client, check: str
) -> None:
    assert not told[known]["MCP", check]


def _ask(url: str, method: str, params: dict[str, Any]) -> Any:
    """The result of a message."""
    body, head = message(method, params, can=TASKS), head_of(method, params)
    answer = httpx.post(f"{url}/mcp", json=body, headers=head, timeout=60)
    return answer.json()["result"]


def test_another_process_answers_for_the_one_that_gave_the_handle(one: Host) -> None:
    params = {"name": "demo", "arguments": {"message": "sleep 60"}}
    handle = _ask(one.here, "tools/call", params)["taskId"]
    assert _ask(one.there, "tools/call", params)["taskId"] == handle
    assert _ask(one.there, "tasks/get", {"taskId": handle})["status"] == "working"
    assert _ask(one.there, "tasks/cancel", {"taskId": handle})["resultType"] == "complete"
    assert _ask(one.here, "tasks/get", {"taskId": handle})["status"] == "cancelled"
