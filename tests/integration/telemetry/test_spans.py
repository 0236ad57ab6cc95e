"""The spans of a host that uses the provider of its project: their names, parents, and what they show."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

import pytest
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from pytest_django import Settings

from a2a_tasks.agents import Turn
from a2a_tasks.execution.attempt_span import SHORT_SECONDS
from a2a_tasks.telemetry import tracing
from a2a_tasks.telemetry.attributes import TABLE, SpanName
from tests.support.agents_under_test import playing
from tests.support.bindings.peers import Fault, Peer, message
from tests.support.bindings.puppet import Puppet
from tests.support.execution.waiting import until
from tests.support.spans import Spans

pytestmark = pytest.mark.django_db
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SPAN}-01"
SECRET = "sk-abcdefghijklmnop"


def about(span: ReadableSpan) -> Mapping[str, object]:
    return span.attributes or {}


def trace_of(span: ReadableSpan) -> str:
    assert span.context is not None
    return f"{span.context.trace_id:032x}"


async def ended(spans: Spans, name: str) -> ReadableSpan:
    """The span of that name, when it has ended: an answer may come before."""
    await until(lambda: bool(spans.named(name)))
    (found,) = spans.named(name)
    return found


class TestARequest:
    async def test_is_a_span_by_its_operation_in_the_trace_of_its_client(
        self, peer: Peer, spans: Spans
    ) -> None:
        asked = {"traceparent": PARENT, "tracestate": "a=1"}
        task = (await peer.call("SendMessage", message(), asked))["task"]
        send = await ended(spans, "SendMessage")
        assert send.parent is not None
        assert (trace_of(send), f"{send.parent.span_id:016x}") == (TRACE, SPAN)
        assert send.context is not None
        assert send.context.trace_state.to_header() == "a=1"
        assert about(send)["a2a_host.binding"] == peer.name
        assert about(send)["a2a.task.id"] == task["id"]
        assert about(send)["session.id"] == task["contextId"]
        attempt = await ended(spans, "invoke_agent demo")
        assert attempt.parent is not None
        assert attempt.parent.span_id == send.context.span_id

    async def test_that_fails_has_the_error_and_no_id_that_the_client_invents(
        self, peer: Peer, spans: Spans
    ) -> None:
        with pytest.raises(Fault):
            await peer.call("GetTask", {"id": "of-nobody"})
        span = await ended(spans, "GetTask")
        assert about(span)["error.type"] == "TaskNotFound"
        assert span.status.is_unset
        assert "of-nobody" not in str(about(span))

    async def test_with_broken_headers_begins_a_trace_and_logs_nothing(
        self, http_peer: Peer, spans: Spans, caplog: pytest.LogCaptureFixture
    ) -> None:
        broken = {
            "traceparent": f"{PARENT}{SECRET}",
            "tracestate": f"a={SECRET}" * 50_000,
            "baggage": f"key={SECRET}",
        }
        await http_peer.call("SendMessage", message(), broken)
        attempt = await ended(spans, "invoke_agent demo")
        send = await ended(spans, "SendMessage")
        assert send.parent is None
        assert trace_of(attempt) == trace_of(send) != TRACE
        assert SECRET not in caplog.text
        assert SECRET not in str([about(send), about(attempt)])

    async def test_for_a_stream_ends_with_the_stream(
        self, http_peer: Peer, spans: Spans, puppet: Puppet
    ) -> None:
        streaming = http_peer.at("/agents/puppet")
        async with streaming.stream("SendStreamingMessage", message()) as stream:
            hand = await puppet.hand()
            assert not spans.named("SendStreamingMessage")
            hand.end()
            await streaming.items(stream)
        await ended(spans, "SendStreamingMessage")


@pytest.mark.usefixtures("host")
class TestAnAttempt:
    async def test_of_an_agent_that_fails_has_the_error(
        self, http_peer: Peer, spans: Spans, puppet: Puppet
    ) -> None:
        sending = asyncio.ensure_future(http_peer.at("/agents/puppet").send())
        (await puppet.hand()).say(LookupError(SECRET))
        await sending
        span = await ended(spans, "invoke_agent puppet")
        assert (about(span)["error.type"], about(span)["a2a.task.state"]) == (
            "LookupError",
            "failed",
        )
        assert not span.status.is_ok
        assert SECRET not in str([about(span), span.events])

    async def test_shows_content_and_callers_only_if_the_operator_says_so_and_no_credentials(
        self, http_peer: Peer, spans: Spans, puppet: Puppet, settings: Settings
    ) -> None:
        for shows in (False, True):
            settings.A2A_TRACE_CONTENT = shows
            text = f"my key is {SECRET} " + "x" * 10_000
            sending = asyncio.ensure_future(
                http_peer.at("/agents/puppet").send(parts=[{"text": text}])
            )
            hand = await puppet.hand()
            assert await step(hand.turn) == f"paid with {SECRET}"
            hand.say("said", hand.turn.complete(" done"))
            await sending
        await until(lambda: len(spans.named("invoke_agent puppet")) == 2)
        without, with_content = spans.named("invoke_agent puppet")
        assert not {"input.value", "output.value"} & about(without).keys()
        assert "my key is sk-[redacted]" in str(about(with_content)["input.value"])
        assert about(with_content)["output.value"] == "said done"
        assert len(str(about(with_content)["input.value"])) == 4096
        plain, shown = spans.named("step pay")
        assert "output.value" not in about(plain)
        assert about(shown)["output.value"] == '"paid with sk-[redacted]"'
        allowed = {row.name for row in TABLE if SpanName.ATTEMPT in row.spans}
        assert about(with_content).keys() <= allowed

    async def test_after_a_long_wait_links_to_the_one_before_and_has_not_waited_in_the_queue(
        self, http_peer: Peer, spans: Spans, settings: Settings
    ) -> None:
        settings.A2A_POLL_SECONDS = settings.A2A_PARK_SECONDS = 0.05
        with playing(sleeper) as agent:
            await http_peer.at(f"/agents/{agent.slug}").send()
            await until(lambda: len(spans.named(f"invoke_agent {agent.slug}")) == 2)
        both = spans.named(f"invoke_agent {agent.slug}")
        before, after = sorted(both, key=lambda span: span.start_time or 0)
        assert before.context is not None
        assert [link.context.span_id for link in after.links] == [before.context.span_id]
        assert "error.type" not in about(before)
        assert "a2a_host.queue_seconds" not in about(after)
        seconds = about(before)["a2a_host.queue_seconds"]
        assert isinstance(seconds, float)
        waited = seconds >= SHORT_SECONDS  # the machine was busy
        assert len(spans.named(f"queue {agent.slug}")) == waited


async def sleeper(turn: Turn) -> AsyncIterator[str]:
    """An agent that is parked once."""
    await turn.sleep(0.3)
    yield "done"


class Broken(SpanProcessor):
    """A part of a project's provider that always raises."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Raise."""
        raise RuntimeError("on_start")

    def on_end(self, span: ReadableSpan) -> None:
        """Raise."""
        raise RuntimeError("on_end")


async def test_a_provider_that_raises_costs_no_request_and_no_run(
    http_peer: Peer, spans: Spans
) -> None:
    spans.provider.add_span_processor(Broken())
    task = (await http_peer.call("SendMessage", message()))["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"


def test_content_that_no_encoder_takes_is_escaped(spans: Spans, settings: Settings) -> None:
    settings.A2A_TRACE_CONTENT = True
    with tracing.span("said") as begun:
        tracing.content(begun, "output.value", "\ud800")
    assert about(spans.named("said")[0])["output.value"] == "\\ud800"


async def step(turn: Turn) -> str:
    """A step that returns a credential."""
    result: str = await turn.step("pay", lambda: f"paid with {SECRET}")
    return result
