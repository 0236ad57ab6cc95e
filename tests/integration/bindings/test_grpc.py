"""What only gRPC has: its statuses, cancellation and deadlines, the numbers of events, `a2a.v1`, health, reflection, TLS."""

from __future__ import annotations

import asyncio
import math
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from a2a.compat.v0_3 import a2a_v0_3_pb2
from a2a.types import a2a_pb2
from google.protobuf.json_format import MessageToDict
from grpclib.health.v1 import health_pb2
from grpclib.reflection.v1alpha import reflection_pb2
from pytest_django import Settings

from a2a_grpc.binding import messages
from a2a_grpc.binding.rpcs import Rpc
from a2a_grpc.binding.schema import message_class
from a2a_grpc.server import make_server
from a2a_project.operations import TABLE
from a2a_tasks import process_lifetime, pubsub
from a2a_tasks.access import token_buckets
from a2a_tasks.access.api_keys import issue
from a2a_tasks.agents.host_extensions import RESUMABLE_STREAMS
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.streaming.event_buffer import TaskEventBuffer, hub
from tests.support.bindings.authority import Authority
from tests.support.bindings.peers import Fault, no_leak
from tests.support.bindings.puppet import Puppet
from tests.support.bindings.rpc_peer import address, channel, fault_of
from tests.support.execution.waiting import until
from tests.support.grpc_server.frames import call_of, reply
from tests.support.rows import rows

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("host")]

FINAL, OLD = "/lf.a2a.v1.A2AService", "/a2a.v1.A2AService"
Code = grpc.StatusCode


async def ask(method: str, request: Any, answer: Any = bytes, **metadata: str) -> Any:
    written = request if isinstance(request, bytes) else request.SerializeToString()
    call = (await channel()).unary_unary(method)(
        written, metadata=tuple((k.replace("_", "-"), v) for k, v in metadata.items()), timeout=20
    )
    try:
        return answer(await call) if answer is bytes else answer.FromString(await call)
    except grpc.aio.AioRpcError as error:
        raise fault_of(error) from None


async def refused(method: str, request: Any, **metadata: str) -> tuple[str, Fault]:
    """The name of the status of a call, and the fault it tells of."""
    with pytest.raises(Fault) as caught:
        await ask(method, request, **metadata)
    return caught.value.error["code"], caught.value


def said(text: str = "echo hi", **members: Any) -> a2a_pb2.SendMessageRequest:
    message = a2a_pb2.Message(message_id="m1", role=a2a_pb2.ROLE_USER, parts=[{"text": text}])
    return a2a_pb2.SendMessageRequest(message=message, **members)


def old(text: str = "echo hi", **configuration: Any) -> a2a_v0_3_pb2.SendMessageRequest:
    message = a2a_v0_3_pb2.Message(message_id="m1", role="ROLE_USER", content=[{"text": text}])
    return a2a_v0_3_pb2.SendMessageRequest(request=message, configuration=configuration)


async def streamed(method: str, request: Any, **metadata: str) -> Any:
    pairs = tuple((k.replace("_", "-"), v) for k, v in metadata.items())
    return (await channel()).unary_stream(method)(request.SerializeToString(), metadata=pairs)


def broken(request: Any, **change: Any) -> Any:
    for name, value in change.items():
        if isinstance(value, list):
            del getattr(request.message, name)[:]
            getattr(request.message, name).extend(value)
        else:
            setattr(request.message, name, value)
    return request


def holding(number: float) -> Any:
    request = said()
    request.message.metadata.update({"a": {"b": [1.0, number]}})
    return request


def nested(levels: int) -> Any:
    """A send whose data are nested so deep."""
    request = said()
    value = request.message.parts.add().data
    for _ in range(levels):
        value = value.list_value.values.add()
    value.number_value = 1
    return request


BAD: dict[str, tuple[Any, list[str]]] = {
    "no message": (a2a_pb2.SendMessageRequest(), ["message"]),
    "no parts": (broken(said(), parts=[]), ["message.parts"]),
    "a part without content": (broken(said(), parts=[a2a_pb2.Part()]), ["message.parts[0]"]),
    "data without a value": (
        broken(said(), parts=[a2a_pb2.Part(data={})]),
        ["message.parts[0].data"],
    ),
    "no role": (broken(said(), role=0), ["message.role"]),
    "a role nobody knows": (broken(said(), role=7), ["message.role"]),
    "no message id": (broken(said(), message_id=""), ["message.messageId"]),
    "NaN in a Struct": (holding(math.nan), ["message.metadata.a.b[1]"]),
    "infinity in a Struct": (holding(-math.inf), ["message.metadata.a.b[1]"]),
    "a length below 0": (
        said(configuration={"history_length": -1}),
        ["configuration.historyLength"],
    ),
}


def under(key: str) -> Any:
    request = said()
    request.message.metadata.update({key: math.nan})
    return request


class TestBadInput:
    @rows(
        ("request_", "first"),
        [
            pytest.param(under("k" * 10_000), "message.metadata.kkk", id="by a long name"),
            pytest.param(
                broken(said(), parts=[a2a_pb2.Part()] * 100),
                "message.parts[0]",
                id="in many places",
            ),
        ],
    )
    async def test_is_told_in_no_more_than_clients_take(self, request_: Any, first: str) -> None:
        """They take 8 KiB of metadata, and end the call over more."""
        code, fault = await refused(f"{FINAL}/SendMessage", request_)
        assert (code, fault.reason) == ("INVALID_ARGUMENT", "INVALID_PARAMS")
        assert fault.fields[0].startswith(first)

    async def test_of_a_long_version_is_told_in_no_more_than_clients_take(self) -> None:
        code, fault = await refused(f"{FINAL}/GetTask", b"", a2a_version="9" * 7000)
        assert (code, fault.reason) == ("FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED")

    @rows("row", [pytest.param(row, id=name) for name, row in BAD.items()])
    @rows("rpc", ["SendMessage", "SendStreamingMessage"])
    async def test_is_an_invalid_argument_that_names_the_field(
        self, row: tuple[Any, list[str]], rpc: str
    ) -> None:
        request, fields = row
        code, fault = await refused(f"{FINAL}/{rpc}", request)
        assert (code, fault.reason, fault.fields) == ("INVALID_ARGUMENT", "INVALID_PARAMS", fields)

    @rows("body", [b"\xff", b"\x12\xff\xff\xff\xff\x7f", nested(60).SerializeToString()])
    async def test_that_is_no_message_cannot_be_read(self, body: bytes) -> None:
        code, fault = await refused(f"{FINAL}/SendMessage", body)
        assert (code, fault.reason) == ("INVALID_ARGUMENT", "PARSE_ERROR")

    async def test_nested_too_deeply_is_named(self, settings: Settings) -> None:
        settings.A2A_MAX_JSON_DEPTH = 8
        code, fault = await refused(f"{FINAL}/SendMessage", nested(12))
        assert code == "INVALID_ARGUMENT"
        assert fault.fields[0].startswith("message.parts[1].data")

    async def test_of_too_many_parts_is_refused_before_any_of_them_is_looked_at(
        self, settings: Settings
    ) -> None:
        settings.A2A_MAX_PARTS = 2
        parts: Any = [{"text": "x"}, {"text": "x"}, {"data": {"number_value": math.nan}}]
        message = a2a_pb2.Message(message_id="m1", role=a2a_pb2.ROLE_USER, parts=parts)
        code, fault = await refused(
            f"{FINAL}/SendMessage", a2a_pb2.SendMessageRequest(message=message)
        )
        assert (code, fault.fields) == ("INVALID_ARGUMENT", ["message.parts"])

    async def test_of_too_many_values_is_refused_as_over_json(self) -> None:
        """Small ones cost far more than their bytes, and hold everything else of the process up while they are read."""
        values = [{"list_value": {"values": [{"bool_value": True}] * 1000}}] * 101
        parts: Any = [{"data": {"list_value": {"values": values}}}]
        message = a2a_pb2.Message(message_id="m1", role=a2a_pb2.ROLE_USER, parts=parts)
        code, fault = await refused(
            f"{FINAL}/SendMessage", a2a_pb2.SendMessageRequest(message=message)
        )
        assert code == "INVALID_ARGUMENT"
        assert fault.fields[0].startswith("message.parts[0].data[99]")

    @rows("state", [9, -1, 2**31 - 1])
    async def test_of_states_nobody_knows_is_named(self, state: int) -> None:
        request = a2a_pb2.ListTasksRequest(status=state)  # type: ignore[arg-type]
        code, fault = await refused(f"{FINAL}/ListTasks", request)
        assert (code, fault.fields) == ("INVALID_ARGUMENT", ["status"])

    async def test_of_a_moment_beyond_the_calendar_is_named(self) -> None:
        request = a2a_pb2.ListTasksRequest(status_timestamp_after={"seconds": 2**60})
        code, fault = await refused(f"{FINAL}/ListTasks", request)
        assert (code, fault.fields) == ("INVALID_ARGUMENT", ["statusTimestampAfter"])

    async def test_too_large_is_refused_by_its_size(self, settings: Settings) -> None:
        settings.A2A_MAX_BODY_BYTES = 10_000
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await (await channel()).unary_unary(f"{FINAL}/SendMessage")(
                said("x" * 10_000).SerializeToString()
            )
        assert caught.value.code() is Code.RESOURCE_EXHAUSTED
        no_leak(caught.value.details() or "")

    @rows("method", ["/lf.a2a.v1.A2AService/Nothing", "/lf.a2a.v2.A2AService/GetTask", "/x.Y/Z"])
    async def test_of_rpcs_that_are_not_there_is_unimplemented(self, method: str) -> None:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await (await channel()).unary_unary(method)(b"")
        assert caught.value.code() is Code.UNIMPLEMENTED

    @rows(
        ("package", "version"),
        [(FINAL, "0.3"), (FINAL, "99.0"), (FINAL, "x"), (OLD, "0.1"), (OLD, "2.0")],
    )
    async def test_of_versions_the_package_has_not_is_named(
        self, package: str, version: str
    ) -> None:
        code, fault = await refused(f"{package}/GetTask", b"", a2a_version=version)
        expected = "FAILED_PRECONDITION" if package == FINAL else "UNIMPLEMENTED"
        assert (code, fault.reason) == (expected, "VERSION_NOT_SUPPORTED")
        assert fault.metadata["requestedVersion"] == version

    async def test_loses_nothing_of_whole_numbers_that_doubles_hold(self) -> None:
        request = said()
        request.message.metadata.update({"n": 2**53, "f": 0.5, "big": 1e300})
        task = (await ask(f"{FINAL}/SendMessage", request, a2a_pb2.SendMessageResponse)).task
        assert dict(task.history[0].metadata) == {"n": 2**53, "f": 0.5, "big": 1e300}

    async def test_of_an_unforeseen_kind_tells_nothing(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> bytes:
            raise RuntimeError("a secret of /etc/passwd")

        monkeypatch.setattr(messages.FinalForm, "answer", fail)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await (await channel()).unary_unary(f"{FINAL}/ListTasks")(b"")
        assert (caught.value.code(), caught.value.details()) == (Code.INTERNAL, "Internal error")


class TestAnAgent:
    async def test_is_named_by_the_metadata(self) -> None:
        found = await ask(f"{OLD}/GetAgentCard", b"", a2a_v0_3_pb2.AgentCard, a2a_agent="tables")
        assert "/agents/tables/" in found.url

    async def test_is_named_by_the_first_segment_of_the_tenant(self, puppet: Puppet) -> None:
        at_once = {"return_immediately": True}
        request = said("x", tenant="puppet/acme", configuration=at_once)
        sent = await ask(f"{FINAL}/SendMessage", request, a2a_pb2.SendMessageResponse)
        (await puppet.hand()).end()
        get = a2a_pb2.GetTaskRequest(id=sent.task.id, tenant="acme")
        assert (await ask(f"{FINAL}/GetTask", get, a2a_pb2.Task, a2a_agent="puppet")).id
        assert (await refused(f"{FINAL}/GetTask", get))[0] == "NOT_FOUND"

    async def test_is_the_default_one_otherwise(self) -> None:
        found = await ask(f"{OLD}/GetAgentCard", b"", a2a_v0_3_pb2.AgentCard)
        assert "/agents/demo/" in found.url

    async def test_that_nobody_knows_is_not_found(self) -> None:
        code, _ = await refused(f"{FINAL}/GetTask", b"", a2a_agent="nobody")
        assert code == "NOT_FOUND"


class TestSlowness:
    @rows("rpc", ["SendMessage", "SendStreamingMessage"])
    async def test_a_call_whose_message_does_not_come_is_cut_off(
        self, settings: Settings, rpc: str
    ) -> None:
        settings.A2A_REQUEST_SECONDS = 0.1
        opened = await channel()
        begin = opened.stream_stream if "Streaming" in rpc else opened.stream_unary
        call = begin(f"{FINAL}/{rpc}")(timeout=20)
        assert await call.code() is Code.DEADLINE_EXCEEDED
        assert await call.details() == "The message did not come in time"

    async def test_a_call_without_a_message_says_nothing(self) -> None:
        call = (await channel()).stream_unary(f"{FINAL}/SendMessage")()
        await call.done_writing()
        assert await call.code() is Code.INVALID_ARGUMENT


class TestOpenCalls:
    async def test_beyond_as_many_as_may_be_open_are_told_when_to_come_again(
        self, settings: Settings, puppet: Puppet
    ) -> None:
        settings.A2A_GRPC_CALLS = 2
        streams = [
            await streamed(f"{FINAL}/SendStreamingMessage", said(), a2a_agent="puppet")
            for _ in range(2)
        ]
        hands = [await puppet.hand() for _ in streams]
        code, fault = await refused(f"{FINAL}/ListTasks", b"")
        assert (code, str(fault)) == ("RESOURCE_EXHAUSTED", "Too many calls are open")
        assert int(dict(fault.response.headers)["retry-after"]) > 0
        for hand in hands:  # the turns need not begin in the order of their calls
            hand.end()
        for stream in streams:
            assert [item async for item in stream]
        assert await ask(f"{FINAL}/ListTasks", b"") is not None

    async def test_that_wait_for_their_messages_make_room_for_those_of_other_connections(
        self, settings: Settings
    ) -> None:
        """Anyone may begin them, without credentials, and again when their time is over."""
        settings.A2A_GRPC_CALLS = 5
        own = [("grpc.use_local_subchannel_pool", 1)]
        target = await address()
        async with (
            grpc.aio.insecure_channel(target, own) as first,
            grpc.aio.insecure_channel(target, own) as second,
        ):
            channels = [first, second, first, second, first, second, first]
            begin: list[Any] = [one.stream_unary(f"{FINAL}/SendMessage") for one in channels]
            waiting = [one(timeout=20) for one in begin]
            codes = [asyncio.ensure_future(call.code()) for call in waiting]
            await until(lambda: sum(code.done() for code in codes) == 2)
            for asked in (1, 2):
                assert await ask(f"{FINAL}/ListTasks", b"") is not None
                assert sum(code.done() for code in codes) <= 2 + asked
            for call in waiting:
                await call.done_writing()
            ends = Counter(code.name for code in await asyncio.gather(*codes))
            assert ends.keys() == {"INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"}
            assert ends["RESOURCE_EXHAUSTED"] in {3, 4}


class TestCredentials:
    @rows("rpc", ["GetTask", "SendMessage", "ListTasks"])
    async def test_are_missed_before_anything_is_said_of_the_message(
        self, settings: Settings, rpc: str
    ) -> None:
        settings.A2A_ANONYMOUS = "0"
        code, fault = await refused(f"{FINAL}/{rpc}", b"\xff")
        assert (code, str(fault)) == ("UNAUTHENTICATED", "Authentication required")
        assert any(name == "www-authenticate" for name, _ in fault.response.headers)

    async def test_open_in_both_packages_what_is_closed_to_others(self, settings: Settings) -> None:
        settings.A2A_ANONYMOUS = "0"
        keys = [(await run_in_thread(issue, name)).key for name in ("alice", "bob")]
        sent = await ask(
            f"{FINAL}/SendMessage", said(), a2a_pb2.SendMessageResponse, x_api_key=keys[0]
        )
        named = a2a_v0_3_pb2.GetTaskRequest(name=f"tasks/{sent.task.id}")
        assert await ask(f"{OLD}/GetTask", named, x_api_key=keys[0])
        assert (await refused(f"{OLD}/GetTask", named, x_api_key=keys[1]))[0] == "NOT_FOUND"
        assert (await refused(f"{OLD}/GetTask", named))[0] == "UNAUTHENTICATED"

    async def test_that_come_too_often_are_told_when_to_come_again(
        self, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Nobody has come yet, also as far as Redis knows, and it is waited for.
        host = uuid.uuid4().hex
        monkeypatch.setattr(pubsub, "prefix", lambda: host)
        monkeypatch.setattr(token_buckets, "PATIENCE_SECONDS", 30.0)
        settings.A2A_RATE_PER_CALLER = "1/h"
        await ask(f"{FINAL}/ListTasks", b"")
        code, fault = await refused(f"{FINAL}/ListTasks", b"")
        assert code == "RESOURCE_EXHAUSTED"
        assert int(dict(fault.response.headers)["retry-after"]) > 0
        assert fault.details[0]["@type"].endswith("google.rpc.RetryInfo")

    async def test_come_before_anything_is_made_of_a_message(
        self, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """To make a tree of one takes a thousand times as long as to parse it."""
        settings.A2A_ANONYMOUS = "0"
        read: list[Rpc] = []
        monkeypatch.setattr(Rpc, "read", property(read.append))
        code, _ = await refused(f"{FINAL}/SendMessage", nested(10))
        assert (code, read) == ("UNAUTHENTICATED", [])


class TestAStream:
    async def begun(self, puppet: Puppet, **metadata: str) -> tuple[Any, Any]:
        """A stream of the puppet, after its first item."""
        call = await streamed(
            f"{FINAL}/SendStreamingMessage", said(), a2a_agent="puppet", **metadata
        )
        item = a2a_pb2.StreamResponse.FromString(await call.read())
        return call, item.task

    async def test_that_is_cancelled_ends_its_follow_and_not_its_task(self, puppet: Puppet) -> None:
        call, _ = await self.begun(puppet)
        hand = await puppet.hand()
        assert hub()._feeds
        call.cancel()
        await let_go()
        assert not hand.turn.cancelled
        hand.end()
        await hand.ended()

    async def test_ends_its_follow_at_its_deadline(self, puppet: Puppet) -> None:
        task = (
            await ask(
                f"{FINAL}/SendMessage",
                said(configuration={"return_immediately": True}),
                a2a_pb2.SendMessageResponse,
                a2a_agent="puppet",
            )
        ).task
        hand = await puppet.hand()
        request = a2a_pb2.SubscribeToTaskRequest(id=task.id).SerializeToString()
        call = (await channel()).unary_stream(f"{FINAL}/SubscribeToTask")(
            request, metadata=(("a2a-agent", "puppet"),), timeout=1
        )
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            async for _ in call:
                pass
        assert caught.value.code() is Code.DEADLINE_EXCEEDED
        await let_go()
        hand.end()
        await hand.ended()

    @pytest.mark.parametrize("seconds", [0.0, 30.0])
    async def test_that_is_quiet_waits_for_events_alone(
        self, puppet: Puppet, settings: Settings, monkeypatch: pytest.MonkeyPatch, seconds: float
    ) -> None:
        """HTTP/2 has pings of its own; with 0 it has none."""
        settings.A2A_GRPC_PING_SECONDS = seconds
        waits: list[float | None] = []
        real = TaskEventBuffer.wait_changed

        def wait_changed(self: TaskEventBuffer, limit: float | None) -> Any:
            waits.append(limit)
            return real(self, limit)

        monkeypatch.setattr(TaskEventBuffer, "wait_changed", wait_changed)
        call, _ = await self.begun(puppet)
        hand = await puppet.hand()
        working = a2a_pb2.StreamResponse.FromString(await call.read())
        assert working.status_update.status.state == a2a_pb2.TASK_STATE_WORKING
        await asyncio.wait({asyncio.create_task(hand.ended())}, timeout=0.05)
        assert set(waits) == {None}
        hand.end()
        await hand.ended()

    async def test_has_no_numbers_unless_they_are_asked_for(self, puppet: Puppet) -> None:
        call, task = await self.begun(puppet)
        assert not task.metadata
        (await puppet.hand()).end()
        while await call.read() is not grpc.aio.EOF:
            pass
        last = dict(await call.trailing_metadata())["last-event-id"]
        assert int(last) >= 2

    async def test_goes_on_after_the_event_that_was_seen(self, puppet: Puppet) -> None:
        wanted = {"a2a_extensions": RESUMABLE_STREAMS.uri}
        call, task = await self.begun(puppet, **wanted)
        number = task.metadata[RESUMABLE_STREAMS.uri]
        hand = await puppet.hand()
        hand.say(hand.turn.working("a"))
        seen = [a2a_pb2.StreamResponse.FromString(await call.read()) for _ in range(2)]
        call.cancel()
        hand.end()
        request = a2a_pb2.SubscribeToTaskRequest(id=task.id)
        again = await streamed(
            f"{FINAL}/SubscribeToTask",
            request,
            a2a_agent="puppet",
            last_event_id=str(number),
            **wanted,
        )
        rest = [a2a_pb2.StreamResponse.FromString(item) async for item in again]
        assert rest[:2] == seen
        numbers = [int(str(one.status_update.metadata[RESUMABLE_STREAMS.uri])) for one in rest]
        assert numbers == list(range(int(number) + 1, int(number) + 1 + len(rest)))
        assert rest[-1].status_update.status.state == a2a_pb2.TASK_STATE_COMPLETED

    async def test_that_breaks_is_an_internal_error_that_tells_nothing(
        self, puppet: Puppet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        call, _ = await self.begun(puppet)
        hand = await puppet.hand()

        def fail(*_: object, **__: object) -> bytes:
            raise RuntimeError("a secret of /etc/passwd")

        monkeypatch.setattr(messages.FinalForm, "event", fail)
        hand.say("x")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            while await call.read():
                pass
        assert (caught.value.code(), caught.value.details()) == (Code.INTERNAL, "Internal error")
        hand.end()

    async def test_of_a_process_that_drains_says_that_the_task_goes_on(
        self, puppet: Puppet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        process = process_lifetime.Lifetime()
        monkeypatch.setattr(process_lifetime, "on_drain", process.on_drain)
        call, _ = await self.begun(puppet)
        hand = await puppet.hand()
        process.begin_drain()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            while await call.read() is not grpc.aio.EOF:
                pass
        assert caught.value.code() is Code.UNAVAILABLE
        assert "the task goes on" in (caught.value.details() or "")
        assert "last-event-id" in dict(caught.value.trailing_metadata() or ())
        assert not hand.turn.cancelled
        hand.end()


async def let_go() -> None:
    async with asyncio.timeout(20):
        while hub()._feeds:  # noqa: ASYNC110 - the hub tells nobody
            await asyncio.sleep(0.01)


class TestTheOlderPackage:
    async def test_sends_as_0_3_and_waits_if_asked_to(self) -> None:
        answer = await ask(
            f"{OLD}/SendMessage", old(blocking=True), a2a_v0_3_pb2.SendMessageResponse
        )
        assert answer.task.status.state == a2a_v0_3_pb2.TASK_STATE_COMPLETED
        assert answer.task.artifacts[0].parts[0].text == "hi"
        assert answer.task.history[0].content[0].text == "echo hi"

    async def test_returns_at_once_if_nothing_is_said(self, puppet: Puppet) -> None:
        answer = await ask(
            f"{OLD}/SendMessage", old(), a2a_v0_3_pb2.SendMessageResponse, a2a_agent="puppet"
        )
        assert answer.task.status.state in {1, 2}
        (await puppet.hand()).end()

    async def test_streams_say_which_status_is_the_last(self) -> None:
        for version in ("0.3", "1.0"):
            call = await streamed(f"{OLD}/SendStreamingMessage", old(), a2a_version=version)
            items = [a2a_v0_3_pb2.StreamResponse.FromString(item) async for item in call]
            assert items[0].WhichOneof("payload") == "task"
            updates = [i.status_update for i in items if i.HasField("status_update")]
            assert [update.final for update in updates][-1:] == [True]
            assert not any(update.final for update in updates[:-1])

    async def test_numbers_its_events_too(self) -> None:
        call = await streamed(
            f"{OLD}/SendStreamingMessage", old(), a2a_extensions=RESUMABLE_STREAMS.uri
        )
        items = [a2a_v0_3_pb2.StreamResponse.FromString(item) async for item in call]
        numbers = [
            int(getattr(item, item.WhichOneof("payload")).metadata[RESUMABLE_STREAMS.uri])
            for item in items
        ]
        assert numbers == list(range(1, len(items) + 1))

    @rows("rpc", ["GetTask", "CancelTask", "SubscribeToTask"])
    async def test_names_tasks_as_resources(self, rpc: str) -> None:
        code, fault = await refused(
            f"{OLD}/{rpc}", a2a_v0_3_pb2.GetTaskRequest(name="tasks/unknown")
        )
        assert (code, str(fault)) == ("NOT_FOUND", "TaskNotFoundError: Task not found")
        assert (fault.reason, fault.metadata) == ("TASK_NOT_FOUND", {"taskId": "unknown"})
        code, fault = await refused(f"{OLD}/{rpc}", b"")
        assert (code, fault.fields) == ("INVALID_ARGUMENT", ["name"])

    @rows(
        ("version", "status", "name"),
        [
            ("1.0", "UNIMPLEMENTED", "UnsupportedOperationError: "),
            ("0.3", "INVALID_ARGUMENT", "InvalidParamsError: "),
        ],
    )
    async def test_errs_by_the_table_of_the_draft_and_by_the_names_of_0_3(
        self, version: str, status: str, name: str
    ) -> None:
        sent = await ask(f"{OLD}/SendMessage", old(blocking=True), a2a_v0_3_pb2.SendMessageResponse)
        again = old()
        again.request.task_id = sent.task.id
        code, fault = await refused(f"{OLD}/SendMessage", again, a2a_version=version)
        assert (code, str(fault).startswith(name)) == (status, True), fault

    async def test_lists_as_the_draft(self) -> None:
        await ask(f"{OLD}/SendMessage", old(blocking=True), bytes)
        made = message_class("a2a.v1.ListTasksRequest")
        page = await ask(
            f"{OLD}/ListTasks",
            made(page_size=1, include_artifacts=True, history_length=0, status=3),
            message_class("a2a.v1.ListTasksResponse"),
        )
        assert (page.page_size, page.total_size, len(page.tasks)) == (1, 1, 1)
        assert page.tasks[0].artifacts
        assert not page.tasks[0].history

    async def test_keeps_references_of_the_draft_and_bytes_once(self, puppet: Puppet) -> None:
        made = message_class("a2a.v1.SendMessageRequest")
        file = {"file": {"file_with_bytes": b"QUJD", "mime_type": "text/plain"}}
        message = {"message_id": "m", "role": 1, "content": [file], "reference_task_ids": ["t"]}
        for version, raw in (("1.0", "UVVKRA=="), ("0.3", "QUJD")):
            answer = asyncio.create_task(
                ask(
                    f"{OLD}/SendMessage",
                    made(request=message, configuration={"blocking": True}),
                    message_class("a2a.v1.SendMessageResponse"),
                    a2a_version=version,
                    a2a_agent="puppet",
                )
            )
            hand = await puppet.hand()
            assert hand.turn.message.parts[0].raw == raw
            hand.end()
            told = (await answer).task.history[0]
            assert told.content[0].file.file_with_bytes == b"QUJD"
            assert list(told.reference_task_ids) == (["t"] if version == "1.0" else [])

    @rows(
        ("create", "read", "many"),
        [
            (
                "CreateTaskPushNotificationConfig",
                "GetTaskPushNotificationConfig",
                "ListTaskPushNotificationConfig",
            ),
            (
                "SetTaskPushNotificationConfig",
                "GetTaskPushNotificationConfig",
                "ListTaskPushNotificationConfig",
            ),
            ("CreateTaskPushNotification", "GetTaskPushNotification", "ListTaskPushNotification"),
        ],
    )
    async def test_registers_webhooks_in_every_generation(
        self, create: str, read: str, many: str
    ) -> None:
        sent = await ask(f"{OLD}/SendMessage", old(), a2a_v0_3_pb2.SendMessageResponse)
        parent = f"tasks/{sent.task.id}"
        config = {"push_notification_config": {"url": "https://hooks.example.com/", "token": "s"}}
        request = a2a_v0_3_pb2.CreateTaskPushNotificationConfigRequest(
            parent=parent, config_id="c", config=config
        )
        kind = a2a_v0_3_pb2.TaskPushNotificationConfig
        made = await ask(f"{OLD}/{create}", request, kind)
        assert made.name == f"{parent}/pushNotificationConfigs/c"
        named = a2a_v0_3_pb2.GetTaskPushNotificationConfigRequest(name=made.name)
        assert await ask(f"{OLD}/{read}", named, kind) == made
        listed = await ask(
            f"{OLD}/{many}",
            a2a_v0_3_pb2.ListTaskPushNotificationConfigRequest(parent=parent),
            a2a_v0_3_pb2.ListTaskPushNotificationConfigResponse,
        )
        assert list(listed.configs) == [made]
        assert await ask(f"{OLD}/DeleteTaskPushNotificationConfig", named) == b""
        assert (await refused(f"{OLD}/{read}", named))[0] == "NOT_FOUND"

    async def test_tells_schemes_as_its_proto_has_them(self, settings: Settings) -> None:
        settings.A2A_ANONYMOUS = "1"
        card = await ask(f"{OLD}/GetAgentCard", b"", a2a_v0_3_pb2.AgentCard)
        assert card.protocol_version == "0.3.0"
        assert card.preferred_transport == "JSONRPC"
        assert {one.transport for one in card.additional_interfaces} >= {"JSONRPC", "HTTP+JSON"}


class TestTheServer:
    async def test_says_that_it_serves(self) -> None:
        for service in ("", "lf.a2a.v1.A2AService", "a2a.v1.A2AService"):
            answer = await ask(
                "/grpc.health.v1.Health/Check",
                health_pb2.HealthCheckRequest(service=service),
                health_pb2.HealthCheckResponse,
            )
            assert answer.status == health_pb2.HealthCheckResponse.SERVING

    @rows("version", ["v1", "v1alpha"])
    async def test_tells_what_it_has(self, version: str) -> None:
        async def reflect(**request: Any) -> Any:
            call = (await channel()).stream_stream(
                f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo"
            )()
            await call.write(reflection_pb2.ServerReflectionRequest(**request).SerializeToString())
            answer = reflection_pb2.ServerReflectionResponse.FromString(await call.read())
            await call.done_writing()
            return MessageToDict(answer)

        listed = (await reflect(list_services=""))["listServicesResponse"]["service"]
        names = {one["name"] for one in listed}
        assert names >= {"lf.a2a.v1.A2AService", "a2a.v1.A2AService", "grpc.health.v1.Health"}
        assert f"grpc.reflection.{version}.ServerReflection" in names
        for name in names:
            found = await reflect(file_containing_symbol=name)
            assert found["fileDescriptorResponse"]["fileDescriptorProto"]

    async def test_is_one_only_if_its_port_is_free(self) -> None:
        port = int((await address()).rpartition(":")[2])
        with pytest.raises(OSError, match="Address already in use"):
            await make_server(TABLE).listen("127.0.0.1", port)

    @rows("path", [b"/\xff", b"/lf.a2a.v1.A2AService/\xc0\xaf", b"\x80/x"])
    async def test_outlives_a_path_that_is_no_text(self, path: bytes) -> None:
        """grpcio would end itself, with every call of everybody (1.85)."""
        watching = await streamed(
            "/grpc.health.v1.Health/Watch", health_pb2.HealthCheckRequest(service="")
        )
        assert await watching.read()
        port = int((await address()).rpartition(":")[2])
        assert b"grpc-status" in await asyncio.to_thread(reply, port, call_of(path))
        assert not watching.done()
        await ask(f"{FINAL}/ListTasks", b"")
        watching.cancel()

    async def test_logs_nothing_that_a_stranger_wrote_into_metadata(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """grpcio would log values that are no UTF-8 as errors, credentials too (1.85)."""
        port = int((await address()).rpartition(":")[2])
        odd = call_of(b"/lf.a2a.v1.A2AService/ListTasks", (b"authorization", b"Bearer s3cret\xff"))
        assert b"grpc-status" in await asyncio.to_thread(reply, port, odd)
        assert "s3cret" not in caplog.text

    @rows(
        "method",
        [
            "/grpc.health.v1.Health/Check",
            "/grpc.health.v1.Health/Watch",
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        ],
    )
    async def test_tells_nothing_of_why_a_message_of_health_or_reflection_cannot_be_read(
        self, method: str
    ) -> None:
        call = (await channel()).stream_stream(method)()
        await call.write(b"\x0a\xff")
        await call.done_writing()
        assert await call.code() is Code.INVALID_ARGUMENT
        assert await call.details() == "The message cannot be read"

    async def test_has_those_who_watch_its_health_ask_elsewhere_and_does_not_drain_for_them(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(process_lifetime, "drain_seconds", lambda: 60.0)
        server = make_server(TABLE)
        port = await server.listen("127.0.0.1", 0)
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as wire:
            watch: Any = wire.unary_stream("/grpc.health.v1.Health/Watch")
            watching = watch(b"")
            said = [await watching.read()]
            async with asyncio.timeout(20):
                await server.stop()
            said.append(await watching.read())
            states = [health_pb2.HealthCheckResponse.FromString(one).status for one in said]
            assert states == [1, 2]  # SERVING, NOT_SERVING
            assert await watching.code() is Code.UNAVAILABLE


@asynccontextmanager
async def secured(settings: Settings, **files: Path) -> AsyncIterator[str]:
    """A server with these files, and where it is."""
    for name, path in files.items():
        setattr(settings, f"A2A_GRPC_{name.upper()}", str(path))
    server = make_server(TABLE)
    port = await server.listen("127.0.0.1", 0)
    yield f"localhost:{port}"
    await server.stop()


class TestTls:
    async def test_is_spoken_with_the_certificate_of_the_settings(
        self, settings: Settings, tmp_path: Path
    ) -> None:
        authority = Authority(tmp_path)
        chain, key = authority.issue("server")
        async with secured(settings, certificate=chain, key=key) as where:
            trusting = grpc.ssl_channel_credentials(authority.path.read_bytes())
            async with grpc.aio.secure_channel(where, trusting) as wire:
                assert await outcome(wire) is None

    async def test_is_kept_from_clients_without_a_certificate_where_one_is_asked_for(
        self, settings: Settings, tmp_path: Path
    ) -> None:
        authority = Authority(tmp_path)
        (chain, key), (own, secret) = authority.issue("server"), authority.issue("client")
        files = {"certificate": chain, "key": key, "client_ca": authority.path}
        shown = {"private_key": secret.read_bytes(), "certificate_chain": own.read_bytes()}
        async with secured(settings, **files) as where:
            for more, code in ((shown, None), ({}, Code.UNAVAILABLE)):
                trusting = grpc.ssl_channel_credentials(authority.path.read_bytes(), **more)
                async with grpc.aio.secure_channel(where, trusting) as wire:
                    assert await outcome(wire) is code

    async def test_names_no_caller_by_its_certificate(
        self, settings: Settings, tmp_path: Path
    ) -> None:
        settings.A2A_ANONYMOUS = "0"
        settings.A2A_MTLS_PEERS = "192.0.2.1"
        authority = Authority(tmp_path)
        (chain, key), (own, secret) = authority.issue("server"), authority.issue("client")
        shown = {"private_key": secret.read_bytes(), "certificate_chain": own.read_bytes()}
        async with secured(settings, certificate=chain, key=key, client_ca=authority.path) as where:
            trusting = grpc.ssl_channel_credentials(authority.path.read_bytes(), **shown)
            async with grpc.aio.secure_channel(where, trusting) as wire:
                assert await outcome(wire) is Code.UNAUTHENTICATED


async def outcome(wire: Any) -> grpc.StatusCode | None:
    """How a call ends; None = well."""
    try:
        await wire.unary_unary(f"{FINAL}/ListTasks")(b"", timeout=20)
    except grpc.aio.AioRpcError as error:
        return error.code()
    return None
