"""Whatever is thrown at the doors: the error the dialect names, never a 500, never a word of Python."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pytest_django import Settings

from a2a_tasks.conf import conf
from tests.support.bindings.client import Client, Response
from tests.support.bindings.peers import Fault, Peer, message, no_leak, state_of
from tests.support.rows import rows

pytestmark = pytest.mark.django_db

AGENT = "/agents/demo"
#: body: JSON-RPC code (dialects §6.1), reason over HTTP. `tests/unit/protocol/test_jsontext.py` has more of each.
DOCUMENTS: dict[str, tuple[bytes, int, str]] = {
    "nothing but white space": (b" ", -32700, ""),
    "half a document": (b'{"message":', -32700, "PARSE_ERROR"),
    "NaN": (b'{"a":NaN}', -32700, "PARSE_ERROR"),
    "a name twice": (b'{"a":1,"a":2}', -32602, "INVALID_PARAMS"),
    "half a surrogate pair and a name twice": (
        b'{"id":"\\ud800","a":1,"a":1}',
        -32600,  # over JSON-RPC it is the id that is wrong
        "INVALID_PARAMS",
    ),
    "100000 levels": (b'{"a":' + b"[" * 100_000, -32602, "INVALID_PARAMS"),
    "a list": (b"[]", -32600, "INVALID_PARAMS"),
    "a string": (b'"x"', -32600, "INVALID_PARAMS"),
}
#: params of a send, the field that is wrong. `tests/unit/protocol/test_v10_decode.py` has all.
SENDS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["message"]),
    (message(parts=[{}]), ["message.parts[0]"]),
    (message(parts=[{"raw": "*"}]), ["message.parts[0].raw"]),
    (message(messageId="a\x00"), ["message.messageId"]),
    (message(contextId="x" * 257), ["message.contextId"]),
    ({**message(), "configuration": {"historyLength": -1}}, ["configuration.historyLength"]),
    ({**message(), "tenant": "a\x00"}, ["tenant"]),
]


@pytest.fixture
def peer(http_peer: Peer) -> Peer:
    """A client over the bindings on HTTP: what is asked here is a matter of HTTP."""
    return http_peer


def checked(response: Response) -> Any:
    """The body of an answer that tells nothing it should not."""
    no_leak(response.body)
    assert response.status < 500, response
    assert response.header("content-type") in {"application/json", "application/a2a+json"}
    assert response.header("content-length") == str(len(response.body))
    return response.json


def reason_of(document: Any) -> str:
    reasons: list[str] = [
        detail["reason"] for detail in document["error"].get("details", []) if "reason" in detail
    ]
    return reasons[0] if reasons else ""


every_document = rows("row", [pytest.param(row, id=name) for name, row in DOCUMENTS.items()])


class TestABodyThatIsNoRequest:
    @every_document
    async def test_gets_the_code_over_json_rpc(
        self, client: Client, row: tuple[bytes, int, str]
    ) -> None:
        body, code, _ = row
        response = await client.post(AGENT, body)
        document = checked(response)
        assert response.status == 200
        assert document["error"]["code"] == code
        assert document["id"] is None

    @every_document
    async def test_gets_the_reason_over_http(
        self, client: Client, row: tuple[bytes, int, str]
    ) -> None:
        body, _, reason = row
        for path in ("message:send", "message:stream"):
            response = await client.post(f"{AGENT}/{path}", body)
            document = checked(response)
            assert (response.status, document["error"]["code"]) == (400, 400)
            assert reason_of(document) == reason or not body.strip()


class TestAnEnvelope:
    @rows(
        ("change", "code", "id_"),
        [
            ({"jsonrpc": "1.0"}, -32600, 1),
            ({"method": 1}, -32600, 1),
            ({"id": True}, -32600, None),
            ({"method": "NoSuchMethod"}, -32601, 1),
            ({"method": "tasks/gets", "id": "x"}, -32601, "x"),
            ({"params": []}, -32602, 1),
            ({"params": False}, -32602, 1),
            ({"params": {"id": 7}}, -32602, 1),
            ({"params": {}, "id": 1.5}, -32602, 1.5),
            ({"params": {}, "id": 2**64 - 1}, -32602, 2**64 - 1),
            ({"params": {}, "id": None}, -32602, None),
            ({"params": None, "id": 0}, -32602, 0),
        ],
    )
    async def test_gets_its_code_and_its_id_back(
        self, client: Client, change: dict[str, Any], code: int, id_: object
    ) -> None:
        envelope = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "t"}}
        response = await client.post(AGENT, {**envelope, **change})
        document = checked(response)
        assert response.status == 200
        assert document["error"]["code"] == code
        assert document["id"] == id_
        assert type(document["id"]) is type(id_)

    @rows("flaw", [b'"a":1,"a":1', b'"a":"\\ud800"', b'"a":1e999'])
    async def test_that_is_refused_gets_its_id_back(self, client: Client, flaw: bytes) -> None:
        body = b'{"jsonrpc":"2.0","method":"GetTask","id":"x",' + flaw + b"}"
        document = checked(await client.post(AGENT, body))
        assert (document["error"]["code"], document["id"]) == (-32602, "x")

    async def test_without_id_is_processed_and_answered_to_null(
        self, host: None, client: Client
    ) -> None:
        response = await client.post(AGENT, {"jsonrpc": "2.0", "method": "ListTasks"})
        assert checked(response)["result"]["tasks"] == []
        assert response.json["id"] is None

    async def test_may_have_members_nobody_knows(self, host: None, client: Client) -> None:
        envelope = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "x": {"y": 1}}
        assert "result" in checked(await client.post(AGENT, envelope))


class TestParametersOfASend:
    @rows("operation", ["SendMessage", "SendStreamingMessage"])
    @rows(("params", "fields"), SENDS)
    async def test_that_are_wrong_are_named(
        self, peer: Peer, operation: str, params: dict[str, Any], fields: list[str]
    ) -> None:
        with pytest.raises(Fault) as caught:
            await peer.at("/agents/demo/a2a/1.0").call(operation, params)
        assert (caught.value.reason, caught.value.fields) == ("INVALID_PARAMS", fields)

    async def test_that_nobody_knows_are_ignored(self, peer: Peer) -> None:
        params = {**message("echo hi", kind="message", unknown=[1]), "unknown": {"a": 1}}
        assert (await peer.call("SendMessage", params))["task"]["artifacts"]

    @rows("text", ["a\x00b", "\x00", "\U0010ffff", "\ufffe", "\u2028"])
    async def test_may_hold_any_character(self, peer: Peer, text: str) -> None:
        task = await peer.send(f"echo x{text}x")
        assert task["artifacts"][0]["parts"] == [{"text": f"x{text}x"}]

    async def test_may_be_as_deep_as_allowed(self, peer: Peer, settings: Settings) -> None:
        settings.A2A_MAX_JSON_DEPTH = 12
        deep: Any = 1
        for _ in range(5):
            deep = [deep]
        await peer.send("echo x", metadata={"k": deep})
        for _ in range(12):
            deep = [deep]
        with pytest.raises(Fault) as caught:
            await peer.send("echo x", metadata={"k": deep})
        assert caught.value.reason == "INVALID_PARAMS"


class TestAPath:
    @rows(
        "path",
        [
            "/nothing",
            "/tasks/a/b/c",
            "/message:nothing",
            "/%00",
            "/%ff",
            "/..%2f..%2fetc%2fpasswd",
            "/tasks/%2e%2e/x",
            "/a2a/1.0/v1/message:send",
            "/a2a/9.9",
            "/a2a/9.9/tasks",
            "/.well-known/nothing",
            "/" + "x" * 5000,
        ],
    )
    @rows("method", ["GET", "POST", "DELETE"])
    async def test_to_nowhere_is_not_found(self, client: Client, path: str, method: str) -> None:
        response = await client.ask(method, AGENT + path)
        document = checked(response)
        assert (response.status, document["error"]["code"]) == (404, 404)
        assert reason_of(document) == "METHOD_NOT_FOUND"

    @rows("id_", ["%ff", "%00", "%ed%a0%80", "a%2Fb", "a%3Ab", "%252e", "x" * 5000, "%F0%9F%98%80"])
    async def test_to_a_strange_id_finds_no_task(
        self, host: None, client: Client, id_: str
    ) -> None:
        for method, suffix in (("GET", ""), ("POST", ":cancel"), ("POST", ":subscribe")):
            response = await client.ask(method, f"{AGENT}/tasks/{id_}{suffix}")
            document = checked(response)
            assert response.status == 404
            assert reason_of(document) == "TASK_NOT_FOUND"

    @rows("tenant", ["%00", "x" * 257])
    async def test_below_a_tenant_there_cannot_be_is_invalid(
        self, client: Client, tenant: str
    ) -> None:
        response = await client.get(f"{AGENT}/{tenant}/tasks")
        assert reason_of(checked(response)) == "INVALID_PARAMS"

    @rows("slug", ["nothing", "bare", "strict", "Demo", "%00", "de%2Fmo", ".."])
    async def test_to_an_agent_that_is_not_there_is_not_found(
        self, client: Client, slug: str
    ) -> None:
        for method, below in (
            ("POST", ""),
            ("GET", "/tasks"),
            ("GET", "/.well-known/agent-card.json"),
            ("POST", "/a2a/1.0"),
        ):
            response = await client.ask(method, f"/agents/{slug}{below}")
            checked(response)
            assert response.status == 404


class TestAQuery:
    @rows(
        "query",
        [
            "pageSize=%ff",
            "%ff=1",
            "pageSize=",
            "historyLength=1e3",
            "pageSize=%D9%A3",
            "includeArtifacts=TRUE",
            "pageToken=%00",
            "tenant=%00",
            "status=%00",
            "contextId=%ed%a0%80",
        ],
    )
    async def test_that_is_wrong_is_invalid(self, client: Client, query: str) -> None:
        response = await client.get(f"{AGENT}/tasks?{query}")
        assert response.status == 400
        assert reason_of(checked(response)) == "INVALID_PARAMS"

    @rows("query", ["unknown=1", "=", "&&&", "a" * 5000, "page_size=1", "%00=1", "contextId=%00"])
    async def test_that_is_merely_strange_is_answered(
        self, host: None, client: Client, query: str
    ) -> None:
        response = await client.get(f"{AGENT}/tasks?{query}")
        assert checked(response)["tasks"] == []


class TestABodyInAnotherDress:
    @rows(
        "headers",
        [
            {"content-type": "text/plain"},
            {"content-type": "multipart/form-data; boundary=x"},
            {"content-type": "application/json, application/json"},
            {"content-type": "application/json", "content-encoding": "gzip"},
            {"content-type": "application/json", "content-encoding": "identity, br"},
        ],
        ids=str,
    )
    async def test_is_not_opened(self, host: None, client: Client, headers: dict[str, str]) -> None:
        """A small body could be a large one inside."""
        call = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks"}
        response = await client.post(AGENT, call, headers)
        assert (response.status, checked(response)["error"]["code"]) == (415, -32005)
        response = await client.post(f"{AGENT}/message:send", message(), headers)
        assert reason_of(checked(response)) == "CONTENT_TYPE_NOT_SUPPORTED"

    async def test_is_not_opened_either_if_a_page_of_another_site_has_it_sent(
        self, host: None, client: Client
    ) -> None:
        """Without asking first a browser sends bodies that are called nothing, or no JSON; others it asks for, and is not allowed."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message()})
        sent = {"origin": "https://evil.example"}
        for path, text in ((AGENT, body), (f"{AGENT}/message:send", json.dumps(message()))):
            for kind in ({}, {"content-type": "text/plain;charset=UTF-8"}):
                response = await client.ask("POST", path, text.encode(), {**sent, **kind})
                assert "error" in checked(response)
                assert response.status in {400, 415}
        asked = {**sent, "access-control-request-headers": "content-type"}
        response = await client.ask("OPTIONS", AGENT, headers=asked)
        assert response.status == 405
        assert not any(name.startswith("access-control") for name, _ in response.headers)
        assert (await client.get(f"{AGENT}/tasks")).json["totalSize"] == 0

    async def test_may_have_no_name_elsewhere(self, host: None, client: Client) -> None:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ListTasks"}).encode()
        assert "result" in checked(await client.ask("POST", AGENT, body))

    @rows("coding", ["identity", "Identity", ""])
    async def test_that_is_none_is_read(self, host: None, client: Client, coding: str) -> None:
        call = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks"}
        assert "result" in checked(await client.post(AGENT, call, {"content-encoding": coding}))


class TestNames:
    async def test_are_not_normalised(self, host: None, client: Client) -> None:
        """The Ångström sign, the letter, and A with a ring are three tasks."""
        at, said = (
            f"{AGENT}/a2a/0.1",
            {"role": "user", "parts": [{"type": "text", "text": "echo hi"}]},
        )
        names = ["\u212b", "\u00c5", "A\u030a", "a\u030a", "\u200bA", "x\r\ny", "\ufb01", "fi"]
        for name in names:
            call = {"jsonrpc": "2.0", "id": 1, "method": "tasks/send"}
            response = await client.post(at, {**call, "params": {"id": name, "message": said}})
            assert checked(response)["result"]["id"] == name
        response = await client.get(f"{AGENT}/tasks")
        assert sorted(task["id"] for task in checked(response)["tasks"]) == sorted(names)

    @rows("id_", ["x" * 1025, "\u00e9" * 4096])
    async def test_of_requests_are_not_too_long_to_stand_in_every_event(
        self, host: None, client: Client, id_: str
    ) -> None:
        call = {"jsonrpc": "2.0", "method": "SendStreamingMessage", "params": message()}
        document = checked(await client.post(AGENT, {**call, "id": id_}))
        assert (document["error"]["code"], document["id"]) == (-32600, None)
        assert checked(await client.get(f"{AGENT}/tasks"))["totalSize"] == 0

    async def test_of_requests_may_be_long(self, host: None, client: Client) -> None:
        call = {"jsonrpc": "2.0", "method": "ListTasks", "id": "x" * 1024}
        assert checked(await client.post(AGENT, call))["id"] == call["id"]

    async def test_of_other_tasks_may_be_so_many(self, peer: Peer) -> None:
        many = [f"t{n}" for n in range(conf.MAX_REFERENCES)]
        assert state_of(await peer.send("echo x", referenceTaskIds=many)) == "completed"
        with pytest.raises(Fault) as caught:
            await peer.send("echo x", referenceTaskIds=[*many, "t"])
        assert caught.value.fields == ["message.referenceTaskIds"]


class TestAHostName:
    HOSTS = (
        "",
        " ",
        "a b",
        "[::1",
        "[]",
        "a:b:c",
        "a" * 5000,
        "\xff",
        "localhost:99999999999",
        "..",
        "%00",
        "a,b",
        "@",
        "http://a",
    )

    @rows("name", HOSTS, ids=lambda name: repr(name[:12]))
    async def test_that_is_none_is_not_answered_with_a_fault(
        self, host: None, client: Client, name: str
    ) -> None:
        for path in ("/.well-known/agent-card.json", "/agents", f"{AGENT}/tasks"):
            response = await client.get(path, {"host": name})
            checked(response)
            assert response.status in {200, 400}


class TestAHeader:
    """What a client says comes back in a body, as JSON, if at all: no header of an answer holds a word of it."""

    @rows("said", ["x%0d%0aset-cookie:%20a=b", "%0a%0aHTTP/1.1%20200%20OK", "x%00"])
    async def test_of_an_answer_holds_nothing_of_the_path(
        self, host: None, client: Client, said: str
    ) -> None:
        for verb, path in (
            ("GET", f"{AGENT}/tasks/{said}"),
            ("POST", f"{AGENT}/tasks/{said}:cancel"),
            ("DELETE", f"{AGENT}/tasks/{said}/pushNotificationConfigs/{said}"),
            ("GET", f"{AGENT}/{said}/tasks?A2A-Version={said}"),
            ("GET", f"/agents/{said}/"),
        ):
            response = await client.ask(verb, path)
            checked(response)
            assert not any("\r" in text or "\n" in text for _, text in response.headers)
            assert "set-cookie" not in dict(response.headers)

    @rows("name", ["a2a-extensions", "x-a2a-extensions", "a2a-version", "origin"])
    async def test_of_an_answer_holds_nothing_of_the_request_s(
        self, host: None, client: Client, name: str
    ) -> None:
        response = await client.get(f"{AGENT}/tasks", {name: "urn:x:nobody knows"})
        assert not any("nobody" in text for _, text in response.headers)


class TestPathAndBody:
    async def test_must_not_name_different_tasks(self, client: Client) -> None:
        for body in ({"id": "u"}, {"id": 1}):
            response = await client.post(f"{AGENT}/tasks/t:cancel", body)
            assert reason_of(checked(response)) == "INVALID_PARAMS"
        response = await client.get(f"{AGENT}/tasks/t?id=u")
        assert reason_of(checked(response)) == "INVALID_PARAMS"

    async def test_must_not_name_different_tenants(self, client: Client) -> None:
        for body in ({"tenant": "other"}, {"tenant": 1}):
            response = await client.post(f"{AGENT}/acme/tasks/t:cancel", body)
            assert reason_of(checked(response)) == "INVALID_PARAMS"

    @rows("body", [b"", b" \n", b"null", b"{}", b'{"metadata":{}}'])
    async def test_may_leave_everything_to_the_path(
        self, host: None, client: Client, body: bytes
    ) -> None:
        response = await client.ask("POST", f"{AGENT}/tasks/t:cancel", body)
        assert reason_of(checked(response)) == "TASK_NOT_FOUND"


class TestABodyTooLarge:
    @pytest.fixture(autouse=True)
    def limit(self, settings: Settings) -> None:
        """A small host."""
        settings.A2A_MAX_BODY_BYTES = 1000

    @rows("path", [AGENT, f"{AGENT}/message:send", f"{AGENT}/message:stream"])
    async def test_is_refused_before_it_is_read(self, client: Client, path: str) -> None:
        headers = {"content-type": "application/json", "content-length": "1001"}
        async with client.exchange("POST", path, headers) as exchange:
            response = await exchange.response()
            assert exchange.taken == 0
        checked(response)
        assert response.status == 413

    @rows("path", [AGENT, f"{AGENT}/message:send", f"{AGENT}/message:stream"])
    async def test_is_refused_as_soon_as_it_is(self, client: Client, path: str) -> None:
        async with client.exchange("POST", path, {"content-type": "application/json"}) as exchange:
            for _ in range(3):
                exchange.upload(b"x" * 400, more=True)
            response = await exchange.response()
            assert exchange.taken == 3
        checked(response)
        assert response.status == 413

    @rows("digits", ["9" * 19, "9" * 5000])
    async def test_may_not_even_say_how_large(self, client: Client, digits: str) -> None:
        headers = {"content-type": "application/json", "content-length": digits}
        response = await client.post(AGENT, {}, headers)
        checked(response)
        assert response.status == 413

    async def test_is_not_one_that_just_fits(self, peer: Peer, host: None) -> None:
        method, path, body, headers = peer.request("SendMessage", message("echo "))
        padded = json.dumps(json.loads(body)).encode().ljust(1000)
        response = await peer.client.ask(method, path, padded, headers)
        assert peer.unwrapped(response)["task"]

    async def test_may_come_in_pieces(self, peer: Peer, host: None) -> None:
        method, path, body, headers = peer.request("SendMessage", message("echo hi"))
        async with peer.client.exchange(method, path, headers) as exchange:
            for index in range(len(body)):
                exchange.upload(body[index : index + 1], more=True)
            exchange.upload(b"")
            assert peer.unwrapped(await exchange.response())["task"]
