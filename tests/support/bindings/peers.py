"""The same question over either binding: what differs on the wire is undone here, so that meanings can be compared."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from a2a_tasks.protocol.catalogue import BY_NAME
from tests.support.bindings.client import Client, Event, Response, Stream

__all__ = ["PEERS", "Fault", "Peer", "message", "no_leak", "state_of"]

#: JSON-RPC's own codes, by what the other binding calls them.
REASONS = {
    -32700: "PARSE_ERROR",
    -32600: "INVALID_REQUEST",
    -32601: "METHOD_NOT_FOUND",
    -32602: "INVALID_PARAMS",
    -32603: "INTERNAL_ERROR",
}
LEAKS = re.compile(
    r'Traceback|File "|\.py\b|Error:|Exception|psycopg|sqlite|django|msgspec|/home/|/tmp/|SELECT "|a2a_(tasks|push)_|object at 0x'
)
_ids = itertools.count(1)


def no_leak(text: str | bytes) -> None:
    """Nothing of Python, the database or the file system is in what a client gets."""
    shown = text.decode(errors="replace") if isinstance(text, bytes) else text
    assert not LEAKS.search(shown), shown


def message(text: str = "echo hi", **members: Any) -> dict[str, Any]:
    """The params of a send."""
    said = {"messageId": f"m{next(_ids)}", "role": "ROLE_USER", "parts": [{"text": text}]}
    return {"message": {**said, **members}}


def state_of(task: Mapping[str, Any]) -> str:
    """A task's state, as people say it."""
    state: str = task["status"]["state"]
    return state.removeprefix("TASK_STATE_").lower().replace("_", "-")


class Fault(Exception):
    """An answer that is an error, by its name."""

    def __init__(self, response: Response, error: Mapping[str, Any], details: Any) -> None:
        super().__init__(error["message"])
        no_leak(response.body)
        assert response.status != 500 or "INVALID_AGENT" in str(details), response.body
        self.response, self.error, self.details = response, error, details or []
        infos = [d for d in self.details if d["@type"].endswith("google.rpc.ErrorInfo")]
        self.metadata: dict[str, str] = infos[0]["metadata"] if infos else {}
        self.reason: str = infos[0]["reason"] if infos else REASONS.get(error["code"], "")
        self.fields = [
            violation["field"]
            for detail in self.details
            if detail["@type"].endswith("google.rpc.BadRequest")
            for violation in detail["fieldViolations"]
        ]


class Peer(ABC):
    """A client of one agent over one binding."""

    name: str

    def __init__(self, client: Client) -> None:
        self.client = client

    def at(self, base: str) -> Peer:
        """The same peer of another agent or mount."""
        return type(self)(Client(self.client.app, base))

    @abstractmethod
    def request(
        self, operation: str, params: Mapping[str, Any]
    ) -> tuple[str, str, bytes, dict[str, str]]:
        """Method, path, body and headers of an operation's request."""

    @abstractmethod
    def unwrapped(self, response: Response) -> Any:
        """The result in an answer. Raises Fault."""

    @abstractmethod
    def item(self, event: Event) -> Any:
        """What an event of a stream says, without the binding's envelope."""

    async def ask(
        self,
        operation: str,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Ask, and return the answer as it is."""
        method, path, body, given = self.request(operation, params or {})
        return await self.client.ask(method, path, body, {**given, **(headers or {})})

    async def call(
        self,
        operation: str,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Ask, and return the result. Raises Fault."""
        return self.unwrapped(await self.ask(operation, params, headers))

    async def headers_and_result(
        self, operation: str, params: Mapping[str, Any], headers: Mapping[str, str]
    ) -> tuple[Mapping[str, str], Any]:
        """Ask, and return the answer's headers too. Raises Fault."""
        response = await self.ask(operation, params, headers)
        return dict(response.headers), self.unwrapped(response)

    async def send(self, text: str = "echo hi", **members: Any) -> Any:
        """Send a message and return the task (or the direct Message under `message`)."""
        configuration = members.pop("configuration", {})
        answer = await self.call(
            "SendMessage", {**message(text, **members), "configuration": configuration}
        )
        return answer.get("task", answer)

    @contextlib.asynccontextmanager
    async def stream(
        self,
        operation: str,
        params: Mapping[str, Any],
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Stream]:
        """Ask for a stream; its events are those of the binding (see `item`)."""
        method, path, body, given = self.request(operation, params)
        async with self.client.stream(method, path, body, {**given, **(headers or {})}) as stream:
            if (refusal := await stream.refusal()) is not None:
                self.unwrapped(refusal)
                raise AssertionError("neither a stream nor an error")
            assert (stream.status, stream.header("content-type")) == (200, "text/event-stream")
            yield stream

    async def next(self, stream: Stream) -> Any:
        """The next item of a stream, None at its end."""
        event = await stream.next()
        return None if event is None else self.item(event)

    async def items(self, stream: Stream) -> list[Any]:
        """All items to the end of a stream."""
        return [self.item(event) for event in await stream.rest()]


class JsonRpc(Peer):
    """Over JSON-RPC."""

    name = "JSONRPC"

    def request(
        self, operation: str, params: Mapping[str, Any]
    ) -> tuple[str, str, bytes, dict[str, str]]:
        """Everything is a POST to the agent."""
        document = {"jsonrpc": "2.0", "id": "q1", "method": operation, "params": params}
        headers = {"content-type": "application/json", "a2a-version": "1.0"}
        return "POST", "/", json.dumps(document).encode(), headers

    def unwrapped(self, response: Response) -> Any:
        """Check the envelope, and open it."""
        document = response.json
        assert response.header("content-type") == "application/json"
        assert document["jsonrpc"] == "2.0"
        assert ("result" in document) != ("error" in document)
        if "error" in document:
            error = document["error"]
            assert error.keys() <= {"code", "message", "data"}
            raise Fault(response, error, error.get("data"))
        assert (response.status, document["id"]) == (200, "q1")
        return document["result"]

    def item(self, event: Event) -> Any:
        """A stream's data are whole responses (R-161)."""
        assert event.data["jsonrpc"] == "2.0"
        assert event.data["id"] == "q1"
        return event.data["result"]


class HttpJson(Peer):
    """Over HTTP+JSON."""

    name = "HTTP+JSON"

    def request(
        self, operation: str, params: Mapping[str, Any]
    ) -> tuple[str, str, bytes, dict[str, str]]:
        """Path, query and body, by the catalogue."""
        known, left = BY_NAME[operation], dict(params)
        path = re.sub(
            r"\{(\w+)\}", lambda found: quote(str(left.pop(found[1])), safe=""), known.path
        )
        headers = {"a2a-version": "1.0"}
        if known.verb in {"GET", "DELETE"}:
            query = urlencode({key: _text(value) for key, value in left.items()})
            return known.verb, f"/{path}?{query}" if query else f"/{path}", b"", headers
        headers["content-type"] = "application/json"
        return known.verb, f"/{path}", json.dumps(left).encode() if left else b"", headers

    def unwrapped(self, response: Response) -> Any:
        """Check the status, and read the body."""
        document = response.json
        if response.status >= 400:
            error = document["error"]
            assert error["code"] == response.status
            assert error.keys() <= {"code", "status", "message", "details"}
            raise Fault(response, error, error.get("details"))
        assert response.status == 200
        return document

    def item(self, event: Event) -> Any:
        """A stream's data are bare items."""
        return event.data


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


PEERS: list[type[Peer]] = [JsonRpc, HttpJson]
