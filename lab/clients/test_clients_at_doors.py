"""The clients of the table *At the doors* in docs/reference/known-clients.md, each in an environment of its own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from django.db import connections
from pytest_django.plugin import DjangoDbBlocker

from a2a_tasks.access.api_keys import issue
from lab.clients.at_doors import AT_DOORS, AtDoor
from lab.clients.programs.environments import NODE, Unavailable
from lab.clients.published import Say, Told
from tests.integration.doors.mcp.raw import TASKS, head_of, message
from tests.journeys.hosts import Host, host

#: The first run makes the environments.
pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def key(emptied: None, django_db_blocker: DjangoDbBlocker) -> str:
    """An API key: clients of OpenAI's API send one in any case."""
    with django_db_blocker.unblock():
        try:
            return issue("campaign").key
        finally:
            connections.close_all()


@pytest.fixture(scope="module")
def one(emptied: None) -> Iterator[Host]:
    """A host with the doors."""
    with host({"A2A_DOORS": "mcp,openai,ag-ui"}) as made:
        yield made


@pytest.fixture(scope="module")
def ask_client(one: Host, key: str, say: Say) -> Callable[[AtDoor], Told]:
    """A function that returns what went wrong with a client, which is asked once."""
    return functools.cache(lambda known: _talk(known, one, key, say))


def _talk(known: AtDoor, one: Host, key: str, say: Say) -> Told:
    if known.client.javascript and NODE:
        return {}
    place = f"{one.here}/mcp" if known.door == "MCP" else one.here
    try:
        return known.client.converse(say, known.checks, place, environ={"KEY": key})
    except Unavailable as why:
        return dict.fromkeys([(known.door, check) for check in known.checks], str(why))


def excused(known: AtDoor) -> list[pytest.MarkDecorator]:
    """On a machine without node: not run, and shown among the results."""
    return [pytest.mark.xfail(run=False, reason=NODE)] if known.client.javascript and NODE else []


@pytest.mark.parametrize(
    ("known", "check"),
    [
        pytest.param(known, check, id=f"{known.name} {known.door} {check}", marks=excused(known))
        for known in AT_DOORS
        for check in known.checks
    ],
)
def test_a_known_client_does_what_it_can(
    ask_client: Callable[[AtDoor], Told], known: AtDoor, check: str
) -> None:
    assert not ask_client(known)[known.door, check]


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
