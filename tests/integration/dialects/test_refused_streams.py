"""An error before the first event of a JSON-RPC stream is told in the way that clients of the dialect read answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.bindings.client import Client, Response
from tests.support.rows import rows

pytestmark = pytest.mark.django_db
#: Mount, methods that send and follow as a stream. All of these read an event stream, whatever comes (A2A 0.3 §7.9).
EVENTS = [
    ("seed-0", "tasks/sendSubscribe", ""),
    ("0.0", "tasks/sendSubscribe", "tasks/resubscribe"),
    ("0.1", "tasks/sendSubscribe", "tasks/resubscribe"),
    ("0.2", "message/stream", "tasks/resubscribe"),
    ("0.3", "message/stream", "tasks/resubscribe"),
]
METHODS = [(mount, method) for mount, *methods in EVENTS for method in methods if method]
JSON = [("1.0", "SendStreamingMessage"), ("1.0", "SubscribeToTask"), ("0.3", "message/send")]
NOT_FOUND = -32001


async def asked(client: Client, mount: str, method: str, params: Any) -> Response:
    """Call a method of the agent `demo`."""
    document = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    return await client.post(f"/agents/demo/a2a/{mount}", document)


def only_event(answer: Response) -> Any:
    """The JSON-RPC response in a stream of one event."""
    assert (answer.status, answer.header("content-type")) == (200, "text/event-stream")
    text = answer.body.decode()
    assert text.startswith("data: ")
    assert text.endswith("\n\n")
    assert text.count("\n") == 2
    document = json.loads(text.removeprefix("data: "))
    assert document["id"] == 7
    return document["error"]


@pytest.mark.usefixtures("host")
class TestAnError:
    @rows(("mount", "method"), METHODS)
    async def test_is_the_only_event(self, client: Client, mount: str, method: str) -> None:
        assert only_event(await asked(client, mount, method, {"message": 5}))["code"] == -32602

    @rows(("mount", "method"), [m for m in METHODS if "resub" in m[1]])
    async def test_of_a_task_that_is_not_there_too(
        self, client: Client, mount: str, method: str
    ) -> None:
        error = only_event(await asked(client, mount, method, {"id": "nowhere"}))
        assert error["code"] == NOT_FOUND

    @rows(("mount", "method"), JSON)
    async def test_is_json_in_1_0_and_where_no_stream_was_asked_for(
        self, client: Client, mount: str, method: str
    ) -> None:
        answer = await asked(client, mount, method, {"message": 5})
        assert answer.header("content-type") == "application/json"
        assert "error" in answer.json

    async def test_of_the_transport_keeps_its_status(self, client: Client, settings: Any) -> None:
        settings.A2A_MAX_BODY_BYTES = 100
        answer = await asked(client, "0.3", "message/stream", {"message": "x" * 1000})
        assert (answer.status, answer.header("content-type")) == (413, "application/json")
