"""The decision tables as clients meet them at the detecting mounts (dialects §1), and what operators may turn.

The first word of a test's id is the number of its line; the spelling of the answer shows which dialect spoke.
"""

from __future__ import annotations

import itertools
import json
import uuid
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any

import pytest
from pytest_django import Settings

from a2a_tasks.bindings.door import switches
from a2a_tasks.protocol.mounts import MOUNTS
from examples.demo.agents import Demo
from tests.support.bindings.client import Client, Response
from tests.support.dialects.clients import BY_NAME
from tests.support.rows import rows

pytestmark = pytest.mark.django_db

#: One mount by all its addresses.
BASES = ("/agents/demo", "/agents/demo/", "/agents/demo/a2a", "/agents/demo/a2a/")
A2A_JSON = "application/a2a+json"
HOOK = "https://hooks.example.com/a2a"
VERSIONS = ["1.0", "0.3", "0.2", "0.1", "0.0"]
#: What a line says in the place of the id of the task that was made before.
TASK = "<task>"
#: ... and of one that nobody has used.
FRESH = "<fresh>"
#: Spelling of a task and A2A-Version of the answer: the dialect.
TONGUES = {
    ("session", None): "s0",
    ("session", "0.0"): "v00",
    ("session", "0.1"): "v01",
    ("kind", "0.2"): "v02",
    ("kind", "0.3"): "v03",
    ("content", "0.2"): "v02",
    ("content", "0.3"): "v03",
    ("word", "1.0"): "dr",
    ("enum", "1.0"): "v10",
}


@pytest.fixture(autouse=True)
def _host(host: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Host a demo agent that takes webhooks."""
    monkeypatch.setattr(Demo, "push_notifications", True)


def in_turn(
    request: pytest.FixtureRequest, client: Client, bases: tuple[str, ...]
) -> Iterator[Client]:
    """Clients at these addresses, row by row; the name of a test tells which is the first."""
    first = len(request.node.name) % len(bases)
    return itertools.cycle(Client(client.app, base) for base in bases[first:] + bases[:first])


@pytest.fixture
def addresses(request: pytest.FixtureRequest, client: Client) -> Iterator[Client]:
    """Clients at the addresses of the detecting mount: each row of a table meets the next one."""
    return in_turn(request, client, BASES)


@pytest.fixture
def stems(request: pytest.FixtureRequest, client: Client) -> Iterator[Client]:
    """Clients of the paths below them, in the same way."""
    return in_turn(request, client, ("/agents/demo", "/agents/demo/a2a"))


@pytest.fixture
def here(client: Client) -> Client:
    return Client(client.app, "/agents/demo")


async def made_by(client: Client, code: str, text: str = "echo hi") -> str:
    return (await BY_NAME[code].of(client, "demo").send(text)).id


def filled(value: Any, task: str) -> Any:
    """What a line asks, with the ids it leaves open."""
    text = json.dumps(value).replace(TASK, task)
    while FRESH in text:
        text = text.replace(FRESH, str(uuid.uuid4()), 1)
    return json.loads(text)


async def call(
    client: Client, method: str, params: Any, version: str = "", path: str = ""
) -> Response:
    document = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    return await client.post(path, document, {"a2a-version": version} if version else {})


def result(response: Response) -> Any:
    """The result of a call."""
    assert response.status == 200
    assert response.json.keys() == {"jsonrpc", "id", "result"}, response.json
    assert response.json["id"] == 7
    return response.json["result"]


def error(response: Response) -> dict[str, Any]:
    """The error of a call."""
    assert response.status == 200
    assert response.header("content-type") == "application/json"
    assert response.json.keys() == {"jsonrpc", "id", "error"}, response.json
    found: dict[str, Any] = response.json["error"]
    return found


def spelling(found: Mapping[str, Any]) -> str:
    """How a task is spelt, bare or in the wrapper of its kind or in a page."""
    task = found.get("task", found)
    task = task["tasks"][0] if "tasks" in task else task
    if "sessionId" in task:
        return "session"
    if "kind" in task:
        return "kind"
    if not task["status"]["state"].startswith("TASK_STATE_"):
        return "word"
    return "content" if "content" in str(task.get("history", [])) else "enum"


def tongue(found: Mapping[str, Any], response: Response) -> str:
    """The dialect of an answer; its header has to agree with its spelling."""
    return TONGUES[spelling(found), response.header("a2a-version")]


# --- JSON-RPC -------------------------------------------------------------------------------------

OLD = {"id": FRESH, "message": {"role": "user", "parts": [{"type": "text", "text": "echo hi"}]}}
KIND: dict[str, Any] = {
    "message": {
        "kind": "message",
        "messageId": FRESH,
        "role": "user",
        "parts": [{"kind": "text", "text": "echo hi"}],
    }
}
FINAL: dict[str, Any] = {
    "message": {"messageId": FRESH, "role": "ROLE_USER", "parts": [{"text": "echo hi"}]}
}
DRAFT: dict[str, Any] = {
    "message": {"messageId": FRESH, "role": "user", "parts": [{"text": "echo hi"}]},
    "configuration": {"blocking": True},
}
ID = {"id": TASK}
SESSION = {"id": TASK, "sessionId": "s"}
#: id, dialect of the answer, method, params, version, dialect the task was made in.
CALLS: list[tuple[str, str, str, Any, str, str]] = [
    ("J3", "v01", "tasks/send", OLD, "0.3", ""),
    ("J3-V=0.0", "v00", "tasks/send", OLD, "0.0", ""),
    ("J6", "v03", "message/send", KIND, "", ""),
    ("J6-V=0.2", "v02", "message/send", KIND, "0.2", ""),
    ("J7.1", "v03", "tasks/get", SESSION, "0.3", "v01"),
    ("J7.2", "v01", "tasks/get", ID, "0.1", "v10"),
    ("J7.4", "s0", "tasks/get", SESSION, "", "v10"),
    *((f"J7.5-{made}", made, "tasks/get", ID, "", made) for made in ("s0", "v00", "v01")),
    *((f"J7.6-{made}", "v03", "tasks/get", ID, "", made) for made in ("v03", "v10")),
    ("J8", "v03", "tasks/list", {}, "", "v10"),
    ("J11.1", "v10", "SendMessage", FINAL, "0.3", ""),
    ("J11.2", "dr", "SendMessage", DRAFT, "1.0", ""),
    ("J11.3", "v10", "SendMessage", {**FINAL, "configuration": {"blocking": True}}, "", ""),
    ("J11.3-V=0.3", "dr", "GetTask", {"name": f"tasks/{TASK}", "tenant": ""}, "0.3", "v10"),
    ("J11.4", "v10", "GetTask", ID, "1.0", "dr"),
    ("J11.5", "dr", "GetTask", ID, "0.3", "v10"),
    ("J11.5-list", "dr", "ListTasks", {}, "0.3", "v10"),
    ("J11.6", "dr", "GetTask", ID, "", "dr"),
    *((f"J11.7-{made}", "v10", "GetTask", ID, "", made) for made in ("v03", "v10")),
    ("J11.7-list", "v10", "ListTasks", {}, "", "dr"),
]  # fmt: skip


async def test_every_address_of_the_mount_is_the_same_mount(client: Client) -> None:
    task = await made_by(client, "v01")
    for method, params, version in (
        ("tasks/get", {"id": task}, ""),
        ("tasks/get", {"id": task, "sessionId": "s"}, ""),
        ("GetTask", {"id": task}, "1.0"),
        ("ListTasks", {}, "0.3"),
        ("SendMessage", {}, ""),
        ("GetTask", {"id": task}, "0.5"),
        ("Nonsense", {}, ""),
    ):
        one, *others = [await call(client, method, params, version, base) for base in BASES]
        assert others == [one] * 3, method
    one, other = [await client.get(f"{base}/tasks/{task}") for base in BASES[::2]]
    assert one == other


class TestACall:
    @rows(
        ("code", "method", "params", "version", "made"),
        [pytest.param(*rest, id=name) for name, *rest in CALLS],
    )
    async def test_is_answered_in_its_dialect(
        self,
        addresses: Iterator[Client],
        code: str,
        method: str,
        params: Any,
        version: str,
        made: str,
    ) -> None:
        there = next(addresses)
        task = await made_by(there, made) if made else ""
        response = await call(there, method, filled(params, task), version)
        assert tongue(result(response), response) == code

    @rows("version", ["", "0.3", "0.0"])
    async def test_of_seed_0s_card_is_answered_with_it(
        self, addresses: Iterator[Client], version: str
    ) -> None:
        there = next(addresses)
        response = await call(there, "agent/getCard", {}, version)
        assert result(response)["url"].endswith("/agents/demo/a2a/seed-0")
        assert response.header("a2a-version") is None

    @rows(
        ("method", "params", "members", "header"),
        [
            pytest.param(
                "tasks/pushNotification/set",
                {"id": TASK, "url": HOOK},
                {"url", "headers"},
                None,
                id="J4-flat",
            ),
            pytest.param(
                "tasks/pushNotification/set",
                {"id": TASK, "pushNotificationConfig": {"url": HOOK}},
                {"id", "pushNotificationConfig"},
                "0.1",
                id="J4-nested",
            ),
            pytest.param(
                "tasks/pushNotificationConfig/set",
                {"taskId": TASK, "pushNotificationConfig": {"id": "c", "url": HOOK}},
                {"taskId", "pushNotificationConfig"},
                "0.3",
                id="J6",
            ),
            pytest.param(
                "SetTaskPushNotificationConfig",
                {"parent": f"tasks/{TASK}", "configId": "c"}
                | {"config": {"pushNotificationConfig": {"url": HOOK}}},
                {"name", "pushNotificationConfig"},
                "1.0",
                id="J9",
            ),
            pytest.param(
                "CreateTaskPushNotificationConfig",
                {"taskId": TASK, "id": "c", "url": HOOK},
                {"taskId", "id", "url"},
                "1.0",
                id="J10",
            ),
        ],
    )
    async def test_about_a_webhook_is_of_the_dialect_that_has_it(
        self,
        addresses: Iterator[Client],
        method: str,
        params: Any,
        members: set[str],
        header: str | None,
    ) -> None:
        there = next(addresses)
        response = await call(there, method, filled(params, await made_by(there, "v01")))
        assert (set(result(response)), response.header("a2a-version")) == (members, header)

    @rows("method", ["Nonsense", "tasks/nonsense", "sendmessage", ""])
    @rows("version", ["", "0.3", "1.0"])
    async def test_of_no_dialect_is_of_an_unknown_method(
        self, addresses: Iterator[Client], method: str, version: str
    ) -> None:
        there = next(addresses)
        fault = error(await call(there, method, {}, version))
        assert fault == {"code": -32601, "message": "Method not found"}

    @rows("method", ["agent/getCard", "tasks/send", "message/send", "tasks/get"])
    async def test_of_a_method_that_1_0_has_not_is_unknown_to_who_asks_for_1_0(
        self, addresses: Iterator[Client], method: str
    ) -> None:
        there = next(addresses)
        task = await made_by(there, "v01")
        fault = error(await call(there, method, {**KIND, "id": task}, "1.0"))
        assert (fault["code"], fault["message"]) == (-32601, "Method not found")


class TestAStream:
    """Streams are spelt as their dialect has them, from the first item to the last."""

    @staticmethod
    async def items(
        client: Client, method: str, params: Any, version: str = ""
    ) -> AsyncIterator[Any]:
        """What a stream says."""
        document = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        headers = {"content-type": "application/json"}
        headers |= {"a2a-version": version} if version else {}
        async with client.stream("POST", "", json.dumps(document).encode(), headers) as stream:
            assert stream.header("content-type") == "text/event-stream"
            for event in await stream.rest():
                assert event.data.keys() == {"jsonrpc", "id", "result"}
                yield event.data["result"]

    @rows(
        ("method", "params", "version", "shape"),
        [
            pytest.param("tasks/sendSubscribe", OLD, "", "id", id="J3"),
            pytest.param("message/stream", KIND, "", "kind", id="J6"),
            pytest.param("message/stream", KIND, "0.2", "kind", id="J6-V=0.2"),
            pytest.param("SendStreamingMessage", FINAL, "", "enum", id="J11.1"),
            pytest.param("SendStreamingMessage", FINAL, "0.3", "enum", id="J11.1-V=0.3"),
            pytest.param("SendStreamingMessage", DRAFT, "1.0", "word", id="J11.2-V=1.0"),
        ],
    )
    async def test_of_a_send(
        self, addresses: Iterator[Client], method: str, params: Any, version: str, shape: str
    ) -> None:
        there = next(addresses)
        found = [item async for item in self.items(there, method, filled(params, ""), version)]
        self.check(shape, found)

    @rows(
        ("made", "method", "version", "shape"),
        [
            pytest.param("v01", "tasks/resubscribe", "", "id", id="J7.5-v01"),
            pytest.param("v00", "tasks/resubscribe", "", "id", id="J7.5-v00"),
            pytest.param("v10", "tasks/resubscribe", "0.1", "id", id="J7.2"),
            pytest.param("v01", "tasks/resubscribe", "0.3", "kind", id="J7.1"),
            pytest.param("v10", "tasks/resubscribe", "", "kind", id="J7.6"),
        ],
    )
    async def test_that_is_resumed(
        self, addresses: Iterator[Client], made: str, method: str, version: str, shape: str
    ) -> None:
        """Ended tasks can be followed in the older dialects: they show how they stand."""
        there = next(addresses)
        task = await made_by(there, made)
        self.check(shape, [item async for item in self.items(there, method, {"id": task}, version)])

    @staticmethod
    def check(shape: str, items: list[Any]) -> None:
        """All items are spelt one way."""
        last = items[-1]
        if shape == "id":
            assert all(item.keys() & {"status", "artifact"} for item in items)
            assert not any(item.keys() & {"kind", "taskId", "contextId"} for item in items)
            assert (last["status"]["state"], last["final"]) == ("completed", True)
        elif shape == "kind":
            assert all("kind" in item for item in items)
            assert (last["status"]["state"], last["final"]) == ("completed", True)
        else:
            said = last["statusUpdate"]
            state = {"word": "completed", "enum": "TASK_STATE_COMPLETED"}[shape]
            assert said["status"]["state"] == state
            assert said.get("final") == {"word": True, "enum": None}[shape]


# --- HTTP+JSON ------------------------------------------------------------------------------------

CONTENT: dict[str, Any] = {
    "message": {"messageId": FRESH, "role": "ROLE_USER", "content": [{"text": "echo hi"}]},
    "configuration": {"blocking": True},
}
REQUEST: dict[str, Any] = {
    "request": {"message_id": FRESH, "role": "ROLE_USER", "content": [{"text": "echo hi"}]},
    "configuration": {"accepted_output_modes": ["text/plain"], "blocking": True},
}
#: id, dialect, verb, path, body, headers, dialect the task was made in.
PATHS: list[tuple[str, str, str, str, Any, dict[str, str], str]] = [
    ("1.7-send", "v10", "POST", "/message:send", FINAL, {"a2a-version": "0.3"}, ""),
    ("1.7-get", "v10", "GET", f"/tasks/{TASK}", None, {}, "dr"),
    ("1.7-list", "v10", "GET", "/tasks", None, {}, "dr"),
    ("H4", "dr", "GET", "/v1/tasks", None, {}, "v03"),
    ("H3-list", "dr", "POST", "/v1/tasks/list", {}, {}, "v03"),
    ("H5-content", "v03", "POST", "/v1/message:send", CONTENT, {}, ""),
    ("H5-request", "v03", "POST", "/v1/message:send", REQUEST, {"content-type": A2A_JSON}, ""),
    ("H5-kind", "v03", "POST", "/v1/message:send", KIND, {}, ""),
    ("H5-parts", "dr", "POST", "/v1/message:send", DRAFT, {"a2a-version": "0.3"}, ""),
    ("H5-glued", "v10", "POST", "/v1/message:send", FINAL, {}, ""),
    ("H6 V=1.0", "dr", "GET", f"/v1/tasks/{TASK}?historyLength=9", None, {"a2a-version": "1.0"}, "v10"),
    ("H6-accept", "dr", "GET", f"/v1/tasks/{TASK}?historyLength=9", None, {"accept": A2A_JSON}, "v03"),
    ("H6-content-type", "dr", "GET", f"/v1/tasks/{TASK}?historyLength=9", None, {"content-type": A2A_JSON}, "v03"),
    *((f"H6-{made}", code, "GET", f"/v1/tasks/{TASK}?historyLength=9", None, {}, made)
      for made, code in (("dr", "dr"), ("v01", "v03"), ("v10", "v03"))),
]  # fmt: skip


class TestAPath:
    @rows(
        ("code", "verb", "path", "body", "headers", "made"),
        [pytest.param(*rest, id=name) for name, *rest in PATHS],
    )
    async def test_is_answered_in_its_dialect(
        self,
        stems: Iterator[Client],
        code: str,
        verb: str,
        path: str,
        body: Any,
        headers: dict[str, str],
        made: str,
    ) -> None:
        below = next(stems)
        task = await made_by(below, made) if made else ""
        sent = b"" if body is None else json.dumps(filled(body, "")).encode()
        named = {"content-type": "application/json"} if sent else {}
        response = await below.ask(verb, path.replace(TASK, task), sent, named | headers)
        assert response.status == 200, response.body
        assert tongue(response.json, response) == code

    async def test_below_a_tenant_is_1_0s(self, stems: Iterator[Client]) -> None:
        below = next(stems)
        made = await below.post("/acme/message:send", filled(FINAL, ""))
        assert tongue(made.json, made) == "v10"
        task = made.json["task"]["id"]
        found = await below.get(f"/acme/tasks/{task}")
        assert tongue(found.json, found) == "v10"
        assert (await below.get(f"/tasks/{task}")).status == 404

    @rows(
        "path",
        [
            pytest.param("/v1/card", id="H2"),
            pytest.param("/v1/agent/authenticatedExtendedCard", id="H2-agent"),
            pytest.param("/agent/authenticatedExtendedCard", id="H1"),
        ],
    )
    async def test_of_an_extended_card_is_refused_as_its_dialect_has_it(
        self, stems: Iterator[Client], path: str
    ) -> None:
        below = next(stems)
        response = await below.get(path)
        assert (response.status, response.header("content-type")) == (404, "application/json")
        assert response.json["code"] == -32004

    @rows("path", ["/v1/message:send", "/v1/message:stream"])
    @rows("body", [b"{", b"[1]", b'"x"'])
    async def test_that_cannot_be_told_apart_is_refused_for_both(
        self, here: Client, path: str, body: bytes
    ) -> None:
        response = await here.post(path, body)
        assert response.status == 400
        assert response.json.keys() >= {"type", "title", "status", "code", "message"}

    async def test_of_a_stream_is_answered_in_its_dialect(self, here: Client) -> None:
        for path, body, key, state in (
            ("/message:stream", FINAL, "statusUpdate", "TASK_STATE_COMPLETED"),
            ("/v1/message:stream", FINAL, "statusUpdate", "TASK_STATE_COMPLETED"),
            ("/v1/message:stream", DRAFT, "statusUpdate", "completed"),
            ("/v1/message:stream", REQUEST, "statusUpdate", "TASK_STATE_COMPLETED"),
        ):
            sent = json.dumps(filled(body, "")).encode()
            headers = {"content-type": "application/json"}
            async with here.stream("POST", path, sent, headers) as stream:
                last = (await stream.rest())[-1].data[key]
            assert last["status"]["state"] == state
            assert ("final" in last) == (body is not FINAL)


# --- the version ----------------------------------------------------------------------------------

#: Bodies that would be refused for something else, and the id to answer to.
BROKEN: dict[str, tuple[bytes, Any]] = {
    "malformed": (b"{", None),
    "empty": (b"", None),
    "batch": (b'[{"jsonrpc":"2.0","id":7,"method":"GetTask"}]', None),
    "no object": (b"7", None),
    "no envelope": (b'{"id":7,"method":"GetTask"}', 7),
    "no method": (b'{"jsonrpc":"2.0","id":7}', 7),
    "bad id": (b'{"jsonrpc":"2.0","id":[7],"method":"GetTask"}', None),
    "twice": (b'{"jsonrpc":"2.0","id":7,"method":"GetTask","method":"GetTask"}', 7),
    "unknown method": (b'{"jsonrpc":"2.0","id":7,"method":"Nonsense"}', 7),
    "wrong params": (b'{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":[1]}', 7),
    "missing params": (b'{"jsonrpc":"2.0","id":"seven","method":"SendMessage"}', "seven"),
    "odd role": (
        b'{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":{"message":{"role":[]}}}',
        7,
    ),
    "no such task": (b'{"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{"id":"t"}}', 7),
    "sound": (b'{"jsonrpc":"2.0","id":7,"method":"ListTasks"}', 7),
}
EVERY_BASE = [*BASES, *(f"/agents/demo/{mount.path}" for mount in MOUNTS.values())]


class TestAVersionThatNobodySpeaks:
    """J1: refused before anything else."""

    @rows(
        ("base", "broken"),
        [(BASES[0], each) for each in BROKEN] + [(base, "sound") for base in EVERY_BASE[1:]],
    )
    async def test_is_refused_whatever_else_is_wrong(
        self, client: Client, base: str, broken: str
    ) -> None:
        body, id_ = BROKEN[broken]
        for query, headers in (("", {"A2A-Version": "0.5"}), ("?A2A-Version=0.5", {})):
            response = await client.post(base + query, body, headers)
            fault = error(response)
            assert (fault["code"], response.json["id"]) == (-32009, id_)

    async def test_is_told_in_the_dialect_of_the_method_and_its_params(
        self, addresses: Iterator[Client]
    ) -> None:
        """6.8: as 1.0 has it, as the draft has it, and bare for slash methods."""
        there = next(addresses)
        (info,) = error(await call(there, "GetTask", {}, "0.5"))["data"]
        assert info["metadata"]["requestedVersion"] == "0.5"
        assert set(info["metadata"]["supportedVersions"].split(",")) == set(VERSIONS)
        fault = error(await call(there, "SendMessage", DRAFT, "0.5"))
        assert set(fault["data"]["supportedVersions"]) == set(VERSIONS)
        fault = error(await call(there, "tasks/get", {}, "0.5"))
        assert fault == {"code": -32009, "message": "Version not supported"}

    @rows(
        ("verb", "path", "is_problem"),
        [
            ("POST", "/message:send", False),
            ("GET", "/acme/tasks", False),
            ("PUT", "/nonsense", False),
            ("POST", "/v1/message:send", True),
            ("GET", "/v1/tasks/t", True),
            ("PUT", "/v1/nonsense", True),
        ],
    )
    @rows("body", [b"", b"{"])
    async def test_is_a_status_or_a_problem_over_http(
        self, here: Client, verb: str, path: str, is_problem: bool, body: bytes
    ) -> None:
        for query, headers in (("", {"A2A-Version": "0.5"}), ("?A2A-Version=0.5", {})):
            response = await here.ask(verb, path + query, body, headers)
            assert response.status == 400
            if is_problem:
                assert response.header("content-type") == "application/problem+json"
                assert set(response.json["supportedVersions"]) == set(VERSIONS)
            else:
                (info,) = response.json["error"]["details"]
                assert info["reason"] == "VERSION_NOT_SUPPORTED"

    async def test_has_done_nothing(self, here: Client) -> None:
        await call(here, "SendMessage", filled(FINAL, ""), "0.5")
        await here.post("/message:send", filled(FINAL, ""), {"a2a-version": "0.5"})
        assert result(await call(here, "ListTasks", {}))["totalSize"] == 0


class TestTheVersion:
    @rows(
        ("header", "query", "code"),
        [
            pytest.param("0.3", "", "dr", id="1.2-header"),
            pytest.param("", "0.3", "dr", id="1.2-query"),
            pytest.param("0.3.7", "0.3", "dr", id="1.2-both"),
        ],
    )
    async def test_may_stand_in_either_place(
        self, addresses: Iterator[Client], header: str, query: str, code: str
    ) -> None:
        there = next(addresses)
        task = await made_by(there, "v10")
        response = await call(there, "GetTask", {"id": task}, header, f"?A2A-Version={query}")
        assert tongue(result(response), response) == code

    @rows(("header", "query"), [("1.0", "0.3"), ("1.0", "0.5")])
    async def test_must_not_be_two(
        self, client: Client, addresses: Iterator[Client], header: str, query: str
    ) -> None:
        there = next(addresses)
        fault = error(await call(there, "GetTask", {"id": "t"}, header, f"?A2A-Version={query}"))
        assert fault["code"] == -32009
        fault = error(await call(there, "tasks/get", {"id": "t"}, header, f"?A2A-Version={query}"))
        assert fault["code"] == -32009
        response = await client.get(
            f"/agents/demo/tasks?A2A-Version={query}", {"a2a-version": header}
        )
        assert response.status == 400

    @rows(
        ("code", "admitted"),
        [
            pytest.param("s0", [], id="J0-s0"),
            pytest.param("v00", ["0.0"], id="J0-v00"),
            pytest.param("v01", ["0.1"], id="J0-v01"),
            pytest.param("v02", ["0.2"], id="J0-v02"),
            pytest.param("v03", ["0.3", "0.2"], id="J0-v03"),
            pytest.param("dr", ["1.0", "0.3"], id="J0-dr"),
            pytest.param("v10", ["1.0"], id="J0-v10"),
        ],
    )
    async def test_is_admitted_by_a_pinned_mount_or_refused(
        self, client: Client, code: str, admitted: list[str]
    ) -> None:
        """J0: whatever is spoken, the mount's own dialect answers."""
        task = await made_by(client, "v10")
        at = Client(client.app, f"/agents/demo/{MOUNTS[code].path}")
        method = "GetTask" if code in {"dr", "v10"} else "tasks/get"
        for version in ("", *VERSIONS):
            response = await call(at, method, {"id": task}, version)
            if version in ("", *admitted):
                assert tongue(result(response), response) == code
                continue
            assert error(response)["code"] == -32009
            assert error(await call(at, "Nonsense", [], version))["code"] == -32009


# --- what operators may turn ----------------------------------------------------------------------


class TestASwitch:
    """Each in both of its positions, the default first."""

    async def test_for_strict_versions(self, here: Client, settings: Settings) -> None:
        """A2A_STRICT_VERSION, 1.5."""
        task = await made_by(here, "dr")

        async def codes() -> list[int]:
            asked = [
                await call(here, "GetTask", {"id": task}),
                await call(here, "GetTask", {"id": task}, "0.3"),
                await call(here, "SendMessage", filled(DRAFT, ""), "1.0"),
                await call(here, "GetTask", {"id": task}, "1.0"),
                await call(here, "message/send", filled(KIND, "")),
            ]
            return [response.json.get("error", {}).get("code", 0) for response in asked]

        async def statuses(headers: Mapping[str, str]) -> int:
            return (await here.get("/tasks", headers)).status

        assert await codes() == [0, 0, 0, 0, 0]
        assert await statuses({}) == 200
        settings.A2A_STRICT_VERSION = True
        assert await codes() == [-32009, -32009, -32602, 0, 0]
        assert [await statuses({"a2a-version": v}) for v in ("", "0.3", "1.0")] == [400, 400, 200]

    async def test_for_old_methods_with_1_0(self, here: Client, settings: Settings) -> None:
        """A2A_LEGACY_METHOD_WITH_1_0, C-02."""
        task = await made_by(here, "v01")
        lines = [
            ("message/send", filled(KIND, ""), "v03"),
            ("tasks/send", filled(OLD, ""), "v01"),
            ("tasks/get", {"id": task}, "v01"),
            ("tasks/get", {"id": task, "sessionId": "s"}, "s0"),
            ("tasks/list", {}, "v03"),
        ]
        for method, params, _ in lines:
            assert error(await call(here, method, params, "1.0"))["code"] == -32601
        settings.A2A_LEGACY_METHOD_WITH_1_0 = "serve"
        for method, params, code in lines:
            response = await call(here, method, params, "1.0")
            assert tongue(result(response), response) == code
        assert error(await call(here, "Nonsense", {}, "1.0"))["code"] == -32601

    async def test_for_the_error_table_of_1_0(self, here: Client, settings: Settings) -> None:
        """A2A_V10_ERROR_TABLE, §6.3: the draft has that of 1.0.0 always."""
        task = await made_by(here, "v10")

        async def refused(path: str, verb: str = "POST") -> tuple[int, str]:
            response = await here.ask(verb, path)
            return response.status, response.json["error"]["status"]

        async def unsupported() -> tuple[int, str]:
            response = await here.get("/tasks", {"a2a-version": "0.5"})
            return response.status, response.json["error"]["status"]

        async def by_draft() -> int:
            headers = {"a2a-version": "1.0"}
            return (await here.ask("POST", f"/v1/tasks/{task}:cancel", headers=headers)).status

        assert await refused(f"/tasks/{task}:cancel") == (400, "FAILED_PRECONDITION")
        assert await refused(f"/tasks/{task}:subscribe") == (400, "FAILED_PRECONDITION")
        assert await refused("/tasks/nothing", "GET") == (404, "NOT_FOUND")
        assert await unsupported() == (400, "FAILED_PRECONDITION")
        assert await by_draft() == 409
        settings.A2A_V10_ERROR_TABLE = "1.0.0"
        assert await refused(f"/tasks/{task}:cancel") == (409, "FAILED_PRECONDITION")
        assert await refused(f"/tasks/{task}:subscribe") == (400, "UNIMPLEMENTED")
        assert await refused("/tasks/nothing", "GET") == (404, "NOT_FOUND")
        assert await unsupported() == (400, "UNIMPLEMENTED")
        assert await by_draft() == 409

    async def test_for_the_size_of_pages(self, here: Client, settings: Settings) -> None:
        """A2A_LIST_PAGE_SIZE_RETURNS_COUNT, C-07."""
        await made_by(here, "v10")
        await made_by(here, "dr")

        async def sizes() -> list[int]:
            asked: Iterable[tuple[str, Any, str]] = [
                ("ListTasks", {"pageSize": 30}, "1.0"),
                ("ListTasks", {"pageSize": 1}, "1.0"),
                ("ListTasks", {}, "1.0"),
                ("ListTasks", {"pageSize": 30}, "0.3"),
                ("tasks/list", {"pageSize": 30}, ""),
            ]
            return [
                result(await call(here, method, params, version))["pageSize"]
                for method, params, version in asked
            ]

        assert await sizes() == [30, 1, 50, 30, 30]
        assert (await here.get("/tasks?pageSize=30")).json["pageSize"] == 30
        settings.A2A_LIST_PAGE_SIZE_RETURNS_COUNT = True
        assert await sizes() == [2, 1, 2, 2, 2]
        assert (await here.get("/tasks?pageSize=30")).json["pageSize"] == 2

    def test_for_what_unit_tests_hold_in_both_positions_is_read(self, settings: Settings) -> None:
        """A2A_DRAFT_BARE_RESULTS, A2A_DOUBLE_BASE64_V03: `tests/unit/dialects/test_algebra.py`."""
        found = [switches()]
        settings.A2A_DRAFT_BARE_RESULTS, settings.A2A_DOUBLE_BASE64_V03 = True, False
        found.append(switches())
        assert [(one.draft_bare_results, one.double_base64_v03) for one in found] == [
            (False, True),
            (True, False),
        ]
