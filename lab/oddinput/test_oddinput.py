"""No input at the limits costs its process more than a few times what as many plain letters cost, or holds it for long."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import httpx
import pytest

from lab.oddinput.bodies import DIALECTS, Writer, list_answers, list_bodies
from lab.oddinput.calls import ask_call, list_calls, list_metadata
from lab.oddinput.conftest import Door, GuardedDoor
from lab.oddinput.doors import Odd, list_doors, list_odd
from lab.oddinput.measuring import Measured, ask, find_faults, measure, tell
from lab.oddinput.operators import list_changes
from lab.oddinput.protocols import PROTOCOLS, Protocol, list_heads, list_requests
from lab.oddinput.tokens import list_tokens
from tests import ROOT

pytestmark = pytest.mark.timeout(1800)
DESCRIPTION = ROOT / "tests/integration/console/api/golden/openapi.json"
CSRF = "x" * 32


def no_harm(
    measured: Measured, odds: Iterable[Odd], url: str, send: Callable[[Odd], str] | None = None
) -> str:
    """Send all; return the dearest, after a check that none is too dear or breaks something."""
    costs = measure(measured, odds, send or (lambda odd: ask(url, odd.request)), url)
    assert costs
    assert not find_faults(costs), "\n".join(map(tell, find_faults(costs)))
    dear = sorted(costs, key=lambda cost: cost.cpu, reverse=True)[:10]
    long = sorted(costs, key=lambda cost: cost.held, reverse=True)[:5]
    return "\n".join(map(tell, [*dear, *long]))


def test_odd_paths_queries_heads_and_forms_do_no_harm(
    door: Door, session: str, record_property: Any
) -> None:
    odds = list_odd(list_doors(session, CSRF))
    record_property("dearest", no_harm(door.measured, odds, door.url))


@pytest.mark.parametrize("writer", DIALECTS, ids=lambda writer: writer.name)
def test_odd_bodies_do_no_harm(door: Door, writer: Writer, record_property: Any) -> None:
    record_property("dearest", no_harm(door.measured, list_bodies(writer), door.url))


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
def test_odd_requests_of_other_protocols_do_no_harm(
    door: Door, protocol: Protocol, record_property: Any
) -> None:
    record_property("dearest", no_harm(door.measured, list_requests(protocol), door.url))


def test_odd_heads_of_other_protocols_do_no_harm(door: Door, record_property: Any) -> None:
    record_property("dearest", no_harm(door.measured, list_odd(list_heads()), door.url))


def test_odd_answers_to_a_form_do_no_harm(door: Door, record_property: Any) -> None:
    task = _wait_for_form(door.url)
    record_property("dearest", no_harm(door.measured, list_answers(task), door.url))
    assert _state(door.url, task) == "TASK_STATE_INPUT_REQUIRED"


def _wait_for_form(url: str) -> str:
    """Return the id of a task that waits for the answer to a form."""
    said = {"messageId": "f", "role": "ROLE_USER", "parts": [{"text": "form"}]}
    send = partial(httpx.post, f"{url}/agents/demo/message:send", headers={"A2A-Version": "1.0"})
    task = str(send(json={"message": said}, timeout=60).json()["task"]["id"])
    deadline = time.monotonic() + 60
    while _state(url, task) != "TASK_STATE_INPUT_REQUIRED":
        assert time.monotonic() < deadline
    return task


def _state(url: str, task: str) -> str:
    answer = httpx.get(
        f"{url}/agents/demo/tasks/{task}", headers={"A2A-Version": "1.0"}, timeout=60
    )
    return str(answer.json()["status"]["state"])


def test_odd_bodies_for_the_management_api_do_no_harm(
    door: Door, session: str, record_property: Any
) -> None:
    _wait_for_form(door.url)
    cookie = {"Cookie": f"sessionid={session}"}
    rows = httpx.get(f"{door.url}/api/v1/tasks", headers=cookie, timeout=60).json()["items"]
    keys = {"tasks": str(rows[0]["key"]), "agents": "demo"}
    odds = list_changes(json.loads(DESCRIPTION.read_text()), session, CSRF, keys)
    record_property("dearest", no_harm(door.measured, odds, door.url))


def test_odd_and_large_tokens_do_no_harm(guarded: GuardedDoor, record_property: Any) -> None:
    odds = list_tokens(guarded.issuer)
    record_property("dearest", no_harm(guarded.measured, odds, guarded.web.url))


@pytest.mark.parametrize("odds", [list_metadata, list_calls], ids=["metadata", "messages"])
def test_odd_calls_of_grpc_do_no_harm(
    door: Door, odds: Callable[[], Iterable[Odd]], record_property: Any
) -> None:
    send = partial(ask_call, door.channel)
    record_property("dearest", no_harm(door.calls, odds(), door.url, send))
