"""A thousand hostile requests, answered in this process: no fault of ours, no word of the inside, nothing changed by what was refused."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote_to_bytes

import pytest

from a2a_project.asgi import application
from lab.hostile.bending import hostile
from lab.hostile.golden import Request
from lab.hostile.judge import Answer, is_error, wrong
from lab.hostile.judged import judged
from tests.support.bindings.client import Client, Exchange, Response

pytestmark = pytest.mark.usefixtures("host")
IN_ONE = 250
#: A thousand on PostgreSQL; others show what a database of another kind makes of them.
FIRST = [
    *range(0, 4 * IN_ONE, IN_ONE),
    pytest.param(4 * IN_ONE, marks=pytest.mark.backend("sqlite")),
]


def scope(request: Request) -> dict[str, Any]:
    """The request as a server hands it to the application."""
    raw, _, query = request.target.partition(b"?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.verb.decode("latin-1").upper(),
        "scheme": "http",
        "path": unquote_to_bytes(raw).decode(errors="replace"),
        "raw_path": raw,
        "query_string": query,
        "root_path": "",
        "headers": [(b"host", b"localhost:8000"), *request.headers],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 8000),
    }


async def answer(request: Request) -> Answer:
    """What the host says."""
    async with Exchange(application, scope(request)) as exchange:
        exchange.upload(request.body)
        response = await exchange.response()
    headers = tuple((k.encode(), v.encode("latin-1", "replace")) for k, v in response.headers)
    return Answer(response.status, headers, response.body)


async def made(client: Client) -> dict[str, str]:
    """Something that is there: an ended task."""
    said = {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "echo hi"}]}
    response: Response = await client.post("/agents/demo/message:send", {"message": said})
    task = response.json["task"]
    return {"task": task["id"], "context": task["contextId"]}


async def no_harm(numbers: range, client: Client, settings: Any) -> int:
    """Fail with what is wrong with the answers to the requests of these numbers; how many there were."""
    settings.A2A_POLL_SECONDS = 60.0
    settings.A2A_WEBHOOK_ALLOW_PRIVATE = True
    found = await judged(
        numbers, await made(client), make=hostile, ask=answer, wrong=wrong, refused=is_error
    )
    assert not found, f"{len(found)} problems:\n" + "\n".join(found[:20])
    return len(numbers)


@pytest.mark.parametrize("first", FIRST)
async def test_is_answered_as_it_should_be_and_changes_nothing_if_it_is_refused(
    first: int, client: Client, settings: Any, record_property: Any
) -> None:
    done = await no_harm(range(first, first + IN_ONE), client, settings)
    record_property("hostile", done)
