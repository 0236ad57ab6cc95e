"""One trace from a client to the receiver of a webhook, over all processes, also if one of them is killed."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import grpc
import pytest
from a2a.types import a2a_pb2

from a2a_tasks.models import Step
from a2a_tasks.telemetry.attributes import TABLE, SpanName
from tests.journeys.fixtures import Ask
from tests.journeys.hosts import Host, Workers
from tests.journeys.trace import Trace
from tests.journeys.waiting import eventually
from tests.journeys.wire import plain
from tests.support.collector import Collector, SeenSpan
from tests.support.push.inbox import Inbox, inbox

COMPLETED = "TASK_STATE_COMPLETED"


class Parent:
    """The span of a client, in a trace of its own."""

    def __init__(self) -> None:
        self.trace, self.id = secrets.token_hex(16), secrets.token_hex(8)
        self.header = f"00-{self.trace}-{self.id}-01"


def hook(receiver: Inbox) -> dict[str, dict[str, str]]:
    return {"taskPushNotificationConfig": {"url": receiver.url("/hook")}}


def sent_to(receiver: Inbox, line: str) -> list[str]:
    """The spans, as `TRACE-SPAN`, of the requests that came with such a line."""
    seen = [one.header("traceparent")[0] for one in receiver.seen if one.line.startswith(line)]
    return [header.removeprefix("00-").removesuffix("-01") for header in seen]


def at(span: SeenSpan) -> str:
    return f"{span.trace}-{span.id}"


@pytest.mark.parametrize("agent", ["scout", "process-scout"])
async def test_one_trace_covers_client_host_step_call_and_webhook(
    site: Host, traces: Collector, agent: str
) -> None:
    client = Parent()
    async with inbox() as receiver, plain(site.here, agent, traceparent=client.header) as here:
        task = await here.start(receiver.url("/door"), **hook(receiver))
        await here.until(task, COMPLETED)
        (send,) = await traces.named("SendMessage", client.trace)
        (attempt,) = await traces.named(f"invoke_agent {agent}", client.trace)
        (step,) = await traces.named("step look", client.trace)
        (call,) = await traces.named("GET", client.trace)
        webhooks = await traces.named("POST webhook", client.trace, count=len(receiver.seen) - 1)
        while {at(one) for one in webhooks} != set(sent_to(receiver, "POST /hook")):
            webhooks = await traces.named("POST webhook", client.trace, count=len(webhooks) + 1)

    assert [one.parent for one in (send, attempt, step, call)] == [
        client.id,
        send.id,
        attempt.id,
        step.id,
    ]
    assert {one.parent for one in webhooks} == {send.id}
    assert sent_to(receiver, "GET /door") == [at(call)]
    kinds = [one.kind for one in (send, attempt, step, call, webhooks[0])]
    assert kinds == ["SERVER", "CONSUMER", "INTERNAL", "CLIENT", "PRODUCER"]
    for one in (send, attempt, step):
        assert one.attributes["a2a.task.id"] == task
        assert one.attributes["session.id"] == one.attributes["a2a.context.id"]
    assert attempt.attributes["a2a_host.attempt"] == 1
    assert attempt.attributes["a2a.task.state"] == "completed"
    assert call.attributes["http.response.status_code"] == 200
    processes = {one.process["service.instance.id"] for one in (attempt, step)}
    assert len(processes) == (2 if agent == "process-scout" else 1)
    assert send.process["service.name"] == "a2a-host"


@pytest.mark.backend("stack")  # there are workers to kill
async def test_attempts_of_a_run_are_in_one_trace_and_linked_although_a_worker_is_killed(
    site: Host, workers: Workers, traces: Collector, tmp_path: Path, ask: Ask
) -> None:
    client, notes = Parent(), Trace(tmp_path / "trace")
    (doomed,) = workers.exactly(1)
    async with inbox() as receiver, plain(site.here, "stepper", traceparent=client.header) as here:
        task = await here.start(str(notes.path), **hook(receiver))
        (one,) = await traces.named("step one", client.trace)
        kept = Step.objects.filter(task__public_id=task, name="one")
        await eventually(lambda: ask(kept.exists), "the step being kept")
        doomed.kill()
        workers.exactly(1)
        await here.until(task, COMPLETED)
        first, second = sorted(
            await traces.named("invoke_agent stepper", client.trace, count=2),
            key=lambda span: span.attributes["a2a_host.attempt"],
        )
        (send,) = await traces.named("SendMessage", client.trace)
        (two,) = await traces.named("step two", client.trace)
    assert (first.id, first.failed, first.attributes["error.type"]) == (
        one.parent,
        True,
        "ProcessDied",
    )
    assert second.links == [(client.trace, first.id)]
    assert second.parent == first.parent == send.id
    assert "step replayed" in second.events
    assert two.parent == second.id
    webhooks = sent_to(receiver, "POST /hook")
    assert {place.partition("-")[0] for place in webhooks} == {client.trace}


async def test_a_call_of_grpc_belongs_to_the_trace_in_its_metadata(
    site: Host, traces: Collector
) -> None:
    client = Parent()
    asked = a2a_pb2.GetTaskRequest(id="of-nobody")
    async with grpc.aio.insecure_channel(f"127.0.0.1:{site.grpc}") as channel:
        call: Any = channel.unary_unary("/lf.a2a.v1.A2AService/GetTask")
        with pytest.raises(grpc.aio.AioRpcError):
            await call(asked.SerializeToString(), metadata=[("traceparent", client.header)])
    (span,) = await traces.named("GetTask", client.trace)
    assert (span.parent, span.attributes["a2a_host.binding"]) == (client.id, "GRPC")
    assert (span.attributes["error.type"], span.failed) == ("TaskNotFound", False)


async def test_a_collector_that_hangs_costs_nothing_but_spans(
    site: Host, traces: Collector
) -> None:
    traces.answers.clear()
    try:
        async with plain(site.here, "demo") as here:
            for _ in range(20):
                assert (await here.send("echo hi"))["status"]["state"] == COMPLETED
    finally:
        traces.answers.set()
    client = Parent()
    async with plain(site.here, "demo", traceparent=client.header) as here:
        await here.send("echo hi")
        await traces.named("SendMessage", client.trace)


async def test_spans_have_the_attributes_of_the_table_and_no_others(
    site: Host, traces: Collector
) -> None:
    async with plain(site.here, "demo") as here:
        await here.send("echo hi")
    await traces.named("invoke_agent demo")
    for span in traces.spans:
        allowed = {row.name for row in TABLE if kind_of(span) in row.spans}
        assert span.attributes.keys() <= allowed, span


def kind_of(span: SeenSpan) -> str:
    """Which of the kinds of the table it is."""
    if span.kind == "INTERNAL":
        return SpanName.QUEUE if span.name.startswith("queue ") else SpanName.STEP
    kinds = {
        "SERVER": SpanName.OPERATION,
        "CONSUMER": SpanName.ATTEMPT,
        "CLIENT": SpanName.CALL,
        "PRODUCER": SpanName.WEBHOOK,
    }
    return kinds[span.kind]
