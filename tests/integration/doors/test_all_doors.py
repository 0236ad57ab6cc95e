"""Whatever an A2A binding refuses, every door refuses: in the words of its clients, and with the same records.

The binding stands in the same table as the doors, so that the doors are compared with it. A new door fails here until it
is in the table.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from prometheus_client import REGISTRY
from pytest_django import Settings

from a2a_project.doors import PATHS
from a2a_tasks import process_lifetime, pubsub
from a2a_tasks.access import auth_failures, authentication, switch_cache, token_buckets
from a2a_tasks.access.api_keys import issue
from a2a_tasks.access.grants import GrantRight, grant
from a2a_tasks.bindings.http import Receive, Scope, Send
from a2a_tasks.models import AuditEntry, Task
from a2a_tasks.operations import backpressure
from a2a_tasks.store import db as store
from a2a_tasks.store import switches
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.switches import SwitchState
from tests.integration.doors.mcp.raw import NEW, OLD, head_of, message
from tests.support.bindings.client import Client, Exchange, Response
from tests.support.bindings.puppet import Puppet
from tests.support.budgets import limited
from tests.support.dialects.clients import BY_NAME, Piece
from tests.support.doors import user
from tests.support.execution.waiting import until
from tests.support.spans import Spans, spans

__all__ = ["spans"]
pytestmark = pytest.mark.django_db

#: A key that was never issued.
FORGED = {"x-api-key": "a2a_aaaaaaaaaaaa_" + "b" * 43}


@dataclass(frozen=True)
class Said:
    """What a client of a door is told."""

    status: int
    #: The word by which its programs know the error.
    code: Any = None
    text: str = ""
    retry_after: str = field(default="", compare=False)


@dataclass(frozen=True)
class Way:
    """A way into the host: a door, or the binding that doors are compared with."""

    name: str
    binding: str

    def path(self, slug: str) -> str:
        """The address of an agent."""
        raise NotImplementedError

    def body(self, slug: str, text: str, task: str = "", context: str = "") -> Any:
        """A message to it, in the conversation, or to the task, of that id."""
        raise NotImplementedError

    def head(self, slug: str) -> dict[str, str]:
        """The headers that a client sends by itself."""
        return {"content-type": "application/json"}

    def read(self, answer: Response) -> Said:
        """Return what the client makes of an answer."""
        raise NotImplementedError


@dataclass(frozen=True)
class Binding(Way):
    """A2A 1.0 over HTTP+JSON."""

    def path(self, slug: str) -> str:
        return f"/agents/{slug}/message:send"

    def body(self, slug: str, text: str, task: str = "", context: str = "") -> Any:
        ids = {"taskId": task, "contextId": context}
        said = {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", "parts": [{"text": text}]}
        return {"message": {**said, **{name: id_ for name, id_ in ids.items() if id_}}}

    def head(self, slug: str) -> dict[str, str]:
        return {**super().head(slug), "a2a-version": "1.0"}

    def read(self, answer: Response) -> Said:
        if answer.status == 200:
            return Said(200, text=answer.json["task"]["artifacts"][0]["parts"][0]["text"])
        error = answer.json["error"]
        return Said(answer.status, error["status"], error["message"])


@dataclass(frozen=True)
class Mcp(Way):
    """A tool of an MCP server, called in one era."""

    era: str

    def path(self, slug: str) -> str:
        return "/mcp"

    def _params(self, slug: str, text: str = "", **ids: str | None) -> dict[str, Any]:
        return {"name": slug, "arguments": {"message": text, **ids}}

    def body(self, slug: str, text: str, task: str = "", context: str = "") -> Any:
        ids = {"task": task or None, "context": context or None}
        return message("tools/call", self._params(slug, text, **ids), version=self.era)

    def head(self, slug: str) -> dict[str, str]:
        return head_of("tools/call", self._params(slug), self.era)

    def read(self, answer: Response) -> Said:
        lines = answer.body.splitlines()
        events = [line for line in lines if line.startswith(b"data: ")]
        told = json.loads(events[-1].removeprefix(b"data: ") if events else answer.body)
        if "error" in told:
            return Said(answer.status, told["error"]["code"], told["error"]["message"])
        result = told["result"]
        code = "isError" if result["isError"] else None
        return Said(answer.status, code, result["content"][0]["text"])


@dataclass(frozen=True)
class OpenAI(Way):
    """A completion, as a whole or as a stream."""

    streams: bool

    def path(self, slug: str) -> str:
        return "/v1/chat/completions"

    def body(self, slug: str, text: str, task: str = "", context: str = "") -> Any:
        return {"model": slug, "messages": [user(text)], "stream": self.streams}

    def read(self, answer: Response) -> Said:
        if answer.status != 200:
            error = answer.json["error"]
            return Said(answer.status, error["code"], error["message"])
        if not self.streams:
            return Said(200, text=answer.json["choices"][0]["message"]["content"])
        datas = [line.removeprefix(b"data: ") for line in answer.body.split(b"\n\n") if line]
        chunks = [json.loads(each) for each in datas if each != b"[DONE]"]
        error = next((chunk["error"] for chunk in chunks if "error" in chunk), {"code": None})
        deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk.get("choices")]
        return Said(200, error["code"], "".join(delta.get("content", "") for delta in deltas))


@dataclass(frozen=True)
class AgUi(Way):
    """A run."""

    def path(self, slug: str) -> str:
        return f"/agents/{slug}/ag-ui"

    def body(self, slug: str, text: str, task: str = "", context: str = "") -> Any:
        said = [{"id": uuid.uuid4().hex, "role": "user", "content": text}]
        run = {"threadId": context or "thread", "runId": uuid.uuid4().hex, "messages": said}
        entry = {"interruptId": f"{task}:3", "status": "resolved", "payload": text}
        return {**run, "resume": [entry]} if task else run

    def read(self, answer: Response) -> Said:
        if answer.status != 200:
            error = answer.json["error"]
            return Said(answer.status, error["code"], error["message"])
        lines = [line for line in answer.body.split(b"\n") if line.startswith(b"data: ")]
        events = [json.loads(line.removeprefix(b"data: ")) for line in lines]
        error = next((each for each in events if each["type"] == "RUN_ERROR"), {"code": None})
        deltas = (each["delta"] for each in events if each["type"] == "TEXT_MESSAGE_CHUNK")
        return Said(200, error["code"], "".join(deltas))


WAYS: list[Way] = [
    Binding("a2a", "HTTP+JSON"),
    Mcp("mcp", "mcp", NEW),
    Mcp("mcp-old", "mcp", OLD),
    OpenAI("openai", "openai", streams=False),
    OpenAI("openai-stream", "openai", streams=True),
    AgUi("ag-ui", "ag-ui"),
]


def test_every_door_is_in_the_table() -> None:
    """The catalog begins no tasks."""
    assert {way.binding for way in WAYS[1:]} == PATHS.keys() - {"catalog"}


@pytest.fixture(params=WAYS, ids=lambda way: way.name)
def way(request: pytest.FixtureRequest) -> Way:
    """Each of them."""
    made: Way = request.param
    return made


def count_requests() -> Counter[tuple[str, str]]:
    """The counted requests, by binding and outcome."""
    found: Counter[tuple[str, str]] = Counter()
    for family in REGISTRY.collect():
        for sample in family.samples:
            if sample.name == "a2a_requests_total":
                found[sample.labels["binding"], sample.labels["code"]] += int(sample.value)
    return found


@dataclass
class World:
    """The host and one of its ways in."""

    client: Client
    way: Way
    settings: Settings
    spans: Spans
    headers: Mapping[str, str] = field(default_factory=dict)

    def exchange(self, headers: Mapping[str, str], slug: str = "demo") -> Exchange:
        """Begin a request whose body is still to come."""
        head = {**self.way.head(slug), **headers}
        return self.client.exchange("POST", self.way.path(slug), head)

    async def send(
        self,
        text: str = "echo hi",
        *,
        slug: str = "demo",
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        **ids: str,
    ) -> Said:
        """Send a message; return what the client is told."""
        async with self.exchange(self.headers if headers is None else headers, slug) as exchange:
            whole = json.dumps(self.way.body(slug, text, **ids)).encode()
            exchange.upload(whole if body is None else body)
            answer = await exchange.response()
            return replace(self.way.read(answer), retry_after=answer.header("retry-after") or "")

    async def refused(self, code: str, send: Callable[[], Any]) -> Said:
        """Return what the client is told, after looking at the records: nothing has begun, and the outcome is counted."""
        tasks, counted = await self.tasks(), count_requests()
        traced = len(self.traced())
        said: Said = await send()
        assert await self.tasks() == tasks
        assert count_requests() - counted == {(self.way.binding, code): 1}
        assert len(self.traced()) == traced + 1
        span = self.traced()[-1]
        assert (span.attributes or {})["error.type"] == code
        return said

    async def missed(self, send: Callable[[], Any]) -> None:
        """The client is told that there is no such agent."""
        if self.way.name == "a2a":  # it counts no request for an agent that it does not know
            said = replace(await send(), text="")
        else:
            said = await self.refused("MethodNotFound", send)
        assert said == {
            "a2a": Said(404, "NOT_FOUND"),
            "mcp": Said(400, -32602, "Unknown tool"),
            "mcp-old": Said(200, -32602, "Unknown tool"),
            "ag-ui": Said(404, "METHOD_NOT_FOUND", "No such agent"),
        }.get(self.way.name, Said(404, "model_not_found", "The model 'demo' does not exist"))

    def assert_busy(self, said: Said, status: int, words: str) -> None:
        """The client is told to come later. Clients of MCP show nothing but words to their models."""
        assert words in said.text
        if self.way.binding == "mcp":
            assert (said.status, said.code) == (200, "isError")
            assert said.text.startswith("Busy; call again in ")
        else:
            assert said.status == status
            assert said.retry_after.isdecimal()

    async def has(self, number: int) -> bool:
        """Whether there are so many tasks."""
        return await self.tasks() == number

    def traced(self) -> list[Any]:
        """The spans of requests by this way."""
        ended = self.spans._kept.get_finished_spans()
        key = "a2a_host.binding"
        return [span for span in ended if (span.attributes or {}).get(key) == self.way.binding]

    async def tasks(self) -> int:
        """How many there are."""
        return await run_in_thread(Task.objects.count)

    async def denials(self, action: str) -> list[dict[str, Any]]:
        """The entries of the audit log about those who were not let in."""
        auth_failures.flush()
        await asyncio.to_thread(store.close)
        found = await run_in_thread(
            lambda: list(AuditEntry.objects.filter(action=action).values_list("detail", flat=True))
        )
        return [json.loads(detail) for detail in found]


async def key(**about: Any) -> dict[str, str]:
    """A caller's header."""
    return {"x-api-key": (await run_in_thread(lambda: issue("test", **about))).key}


@pytest.fixture
async def world(
    way: Way,
    doors: None,
    empty_audit_log: None,
    client: Client,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    spans: Spans,
) -> AsyncIterator[World]:
    """A host for known callers, where nobody has come yet, and a caller of it."""
    settings.A2A_DOORS = "mcp, openai, ag-ui"
    settings.A2A_ANONYMOUS = "0"
    settings.A2A_HANG_UP_SECONDS = 0.05
    place = uuid.uuid4().hex
    monkeypatch.setattr(pubsub, "prefix", lambda: place)
    for module in (token_buckets, switch_cache):
        monkeypatch.setattr(module, "PATIENCE_SECONDS", 30.0)
    monkeypatch.setattr(
        auth_failures, "_throttle", auth_failures.Throttle(auth_failures._put, lambda: 0.0)
    )
    authentication.forget()
    switch_cache.forget()
    yield World(client, way, settings, spans, await key(tenant="acme"))
    switch_cache.forget()
    authentication.forget()


class TestCallers:
    async def test_one_who_may_is_answered_and_recorded(self, world: World, way: Way) -> None:
        counted = count_requests()
        assert await world.send() == Said(200, text="hi")
        assert count_requests() - counted == {(way.binding, "ok"): 1}
        (span,) = world.traced()
        assert span.name in {"SendMessage", "SendStreamingMessage"}
        entry = await run_in_thread(lambda: AuditEntry.objects.get(action="task.send"))
        assert (entry.tenant, entry.actor[:4]) == ("acme", "key:")

    @pytest.mark.parametrize(
        ("headers", "code", "why"),
        [
            ({}, "Unauthenticated", "no credentials"),
            (FORGED, "WrongCredentials", "an unknown API key"),
        ],
    )
    async def test_one_whom_nobody_knows_is_refused_before_the_body_is_read(
        self, world: World, way: Way, headers: Mapping[str, str], code: str, why: str
    ) -> None:
        async def send() -> Said:
            async with world.exchange(headers) as exchange:
                answer = await exchange.response()
                assert exchange.taken == 0
                assert any(name == "www-authenticate" for name, _ in answer.headers)
                return way.read(answer)

        said = await world.refused(code, send)
        assert (said.status, said.code) == {
            "a2a": (401, "UNAUTHENTICATED"),
            "mcp": (401, -32000),
            "mcp-old": (401, -32000),
            "openai": (401, "invalid_api_key"),
            "openai-stream": (401, "invalid_api_key"),
            "ag-ui": (401, code),
        }[way.name]
        assert [each["why"] for each in await world.denials("access.refused")] == [why]

    async def test_one_without_a_grant_finds_no_such_agent(self, world: World) -> None:
        world.settings.A2A_GRANTS = "listed"
        await world.missed(world.send)

    async def test_one_who_may_only_see_the_agent_may_not_use_it(
        self, world: World, way: Way
    ) -> None:
        world.settings.A2A_GRANTS = "listed"
        await run_in_thread(grant, "demo", "*", GrantRight.SEE)
        said = await world.refused("Forbidden", world.send)
        if way.binding == "mcp":  # a tool that its caller may not use would be of no use
            assert said == await world.send(slug="nobody")
        else:
            word = {"a2a": "PERMISSION_DENIED", "ag-ui": "Forbidden"}
            assert said.code == word.get(way.name, "insufficient_permissions")
            assert said.status == 403
        assert len(await world.denials("access.denied")) == 1

    @pytest.mark.parametrize("way", [Mcp("mcp", "mcp", era) for era in (NEW, OLD)], ids=[NEW, OLD])
    @pytest.mark.parametrize("method", ["tools/call", "tools/list"])
    async def test_one_who_may_only_see_it_is_refused_at_its_own_address_of_mcp(
        self, world: World, way: Mcp, method: str
    ) -> None:
        world.settings.A2A_GRANTS = "listed"
        params = {"name": "demo", "arguments": {"message": "echo hi"}}
        head = {**head_of(method, params, way.era), **world.headers}

        async def ask(slug: str = "demo") -> Said:
            body = message(method, params, version=way.era)
            return way.read(await world.client.post(f"/agents/{slug}/mcp", body, head))

        missing = await world.refused("MethodNotFound", ask)
        assert missing == await ask("nobody")
        assert missing.status == 404
        await run_in_thread(grant, "demo", "*", GrantRight.SEE)
        assert (await world.refused("Forbidden", ask)).status == 403
        assert len(await world.denials("access.denied")) == 1

    async def test_an_agent_that_is_switched_off_is_not_there(self, world: World) -> None:
        await run_in_thread(switches.set_state, "demo", SwitchState.OFF)
        await switch_cache.fresh()
        await world.missed(world.send)


class TestLimits:
    """All of them pass: whoever comes later is answered."""

    async def test_of_the_rate_of_a_caller(self, world: World, way: Way) -> None:
        world.settings.A2A_RATE_PER_CALLER = "1/h"
        await world.send("echo first")

        async def send() -> Said:
            async with world.exchange(world.headers) as exchange:
                if way.binding == "mcp":  # lists are not counted, so the body is looked at
                    exchange.upload(json.dumps(way.body("demo", "echo hi")).encode())
                answer = await exchange.response()
                assert exchange.taken == (1 if way.binding == "mcp" else 0)
                waits = answer.header("retry-after") or ""
                return replace(way.read(answer), retry_after=waits)

        world.assert_busy(await world.refused("RateLimited", send), 429, "Too many requests")

    async def test_of_a_budget(self, world: World) -> None:
        async with limited(0):
            said = await world.refused("RateLimited", world.send)
        world.assert_busy(said, 429, "Nothing is left of the budget 'calls'")

    async def test_of_the_queue(
        self, world: World, puppet: Puppet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        limit = backpressure.make_queue_limit()
        monkeypatch.setattr("a2a_tasks.operations.accept_message.queue_limit", limit)
        monkeypatch.setattr(backpressure, "COUNT_SECONDS", 3600.0)
        world.settings.A2A_RUN_SLOTS = world.settings.A2A_MAX_QUEUED = 1
        other = World(world.client, WAYS[0], world.settings, world.spans, await key())
        async with contextlib.AsyncExitStack() as held:

            async def send(number: int) -> None:
                exchange = await held.enter_async_context(other.exchange(other.headers, "puppet"))
                exchange.upload(json.dumps(other.way.body("puppet", f"{number}")).encode())
                await until(functools.partial(other.has, number))

            await send(1)
            first = await puppet.hand()  # the slot is taken from here on
            await send(2)
            said = await world.refused("Overloaded", world.send)
            first.end()
            (await puppet.hand()).end()
        world.assert_busy(said, 503, "Too many runs are waiting for this agent")

    async def test_of_the_line_to_the_database(self, world: World) -> None:
        world.settings.A2A_MAX_WAITING = 0
        said = await world.refused("Overloaded", world.send)
        world.assert_busy(said, 503, "Too many requests are waiting")

    async def test_of_an_agent_that_drains(self, world: World) -> None:
        await run_in_thread(switches.set_state, "demo", SwitchState.DRAINING)
        await switch_cache.fresh()
        said = await world.refused("Overloaded", world.send)
        world.assert_busy(said, 503, "The agent takes no new tasks at the moment")


class TestBodies:
    @pytest.mark.parametrize("body", [b"{", b"\xff\xfe", b'{"a": NaN}'])
    async def test_that_are_no_json(self, world: World, way: Way, body: bytes) -> None:
        said = await world.refused("ParseError", functools.partial(world.send, body=body))
        assert (said.status, said.code) == (
            400,
            {"a2a": "INVALID_ARGUMENT", "openai": "parse_error", "ag-ui": "PARSE_ERROR"}.get(
                way.name.removesuffix("-stream"), -32700
            ),
        )

    async def test_that_are_too_deep(self, world: World, way: Way) -> None:
        whole = json.dumps({**way.body("demo", "echo hi"), "x": "DEEP"})
        body = whole.replace('"DEEP"', "[" * 200 + "]" * 200).encode()
        said = await world.refused("Flawed", functools.partial(world.send, body=body))
        assert said.status == 400

    @pytest.mark.parametrize("announced", [True, False])
    async def test_that_are_too_large(self, world: World, *, announced: bool) -> None:
        world.settings.A2A_MAX_BODY_BYTES = 1000
        headers = {**world.headers, **({"content-length": "3000"} if announced else {})}
        send = functools.partial(world.send, "x" * 2000, headers=headers)
        assert (await world.refused("TooLarge", send)).status == 413

    async def test_whose_message_is_too_large(self, world: World) -> None:
        world.settings.A2A_MAX_MESSAGE_BYTES = 1000
        said = await world.refused("InvalidParams", functools.partial(world.send, "x" * 2000))
        assert said.status in {200, 400}
        assert said.code

    async def test_of_another_kind(self, world: World) -> None:
        headers = {**world.headers, "content-type": "text/plain"}
        counted = await world.tasks()
        assert (await world.send(headers=headers)).status in {400, 415}
        assert await world.tasks() == counted


class TestOthersTasks:
    @pytest.fixture
    async def foreign(self, world: World) -> Any:
        """A task of another tenant, which waits for an answer."""
        other = World(world.client, WAYS[0], world.settings, world.spans, await key(tenant="evil"))
        async with other.exchange(other.headers) as exchange:
            exchange.upload(json.dumps(other.way.body("demo", "ask Who?")).encode())
            return (await exchange.response()).json["task"]

    async def test_are_not_answered(self, world: World, way: Way, foreign: Any) -> None:
        if way.binding == "openai":  # its clients name no task: the next test is theirs
            return
        tasks = await world.tasks()
        said = await world.send("mine", task=foreign["id"])
        assert said.code == {
            "a2a": "NOT_FOUND",
            "ag-ui": "TASK_NOT_FOUND",
        }.get(way.name, "isError")
        unknown = await world.send("mine", task=str(uuid.uuid4()))
        assert unknown == said
        assert await world.tasks() == tasks
        task = await run_in_thread(lambda: Task.objects.get(public_id=foreign["id"]))
        assert task.state == "TASK_STATE_INPUT_REQUIRED"

    async def test_are_not_joined_by_their_conversation(
        self, world: World, way: Way, foreign: Any
    ) -> None:
        context = foreign["contextId"]
        headers = {**world.headers, "a2a-context-id": context, "x-openwebui-chat-id": context}
        await world.send("echo mine", context=context, headers=headers)
        found = await run_in_thread(
            lambda: dict(Task.objects.values_list("context__tenant", "context"))
        )
        assert found.keys() == {"acme", "evil"}
        assert len(set(found.values())) == 2


class TestADrain:
    async def test_ends_no_task(
        self, world: World, way: Way, puppet: Puppet, life: process_lifetime.Lifetime
    ) -> None:
        async with world.exchange(world.headers, "puppet") as exchange:
            exchange.upload(json.dumps(way.body("puppet", "go")).encode())
            hand = await puppet.hand()
            life.begin_drain()
            if way.binding in {"openai", "ag-ui"}:
                said = way.read(await exchange.response())
                assert str(said.code).lower() == "draining"
                assert said.status == (503 if way.name == "openai" else 200)
        assert not hand.turn.cancelled
        hand.say("done")
        hand.end()
        await hand.ended()


@pytest.mark.parametrize("way", WAYS[:1], ids=["all"])
async def test_a_task_goes_through_all_doors(world: World) -> None:
    """Begun by MCP, asked again at OpenAI's API, answered in A2A 0.2; another one is cancelled by AG-UI."""
    client, headers = world.client, dict(world.headers)
    mcp, openai, ag_ui = (replace(world, way=WAYS[n]) for n in (1, 3, 5))

    first = await mcp.send("form")
    task = await run_in_thread(lambda: Task.objects.select_related("context").get())
    assert "- people (integer): How many people" in first.text
    assert task.public_id in first.text

    named = {**headers, "a2a-context-id": task.context.public_id}
    again = await openai.send("many", headers=named)
    assert again.code is None
    assert "- people (integer): How many people" in again.text

    async def with_the_key(scope: Scope, receive: Receive, send: Send) -> None:
        scope["headers"] += [(name.encode(), value.encode()) for name, value in headers.items()]
        await client.app(scope, receive, send)

    old = BY_NAME["v02"].of(Client(with_the_key), "demo")
    trip = {"to": "Rome", "people": 2, "sure": True}
    pieces = [Piece("data", trip)]
    params = old.grammar.send(pieces, task.public_id, "", waits=True, history=0)
    assert (await old.call("send", params))["status"]["state"] == "completed"
    assert '"to": "Rome"' in (await mcp.send("", task=task.public_id)).text
    assert await world.tasks() == 1

    await mcp.send("ask Which one?")
    other = await run_in_thread(lambda: Task.objects.latest("pk"))
    entry = {"interruptId": f"{other.public_id}:3", "status": "cancelled"}
    run = {"threadId": "t", "runId": "r", "messages": [], "resume": [entry]}
    assert (await ag_ui.send(body=json.dumps(run).encode())).code is None
    assert "was cancelled" in (await mcp.send("", task=other.public_id)).text
    assert await world.tasks() == 2
