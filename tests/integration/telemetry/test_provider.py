"""The provider of a process: that of the project stays, and a collector that hangs keeps no process alive."""

from __future__ import annotations

import sys

import pytest
from opentelemetry import trace
from pytest_django import Settings

from a2a_tasks.telemetry.provider import start_provider
from tests.support.collector import collector
from tests.support.processes import python
from tests.support.spans import Spans

#: A process that makes a span and ends.
ENDS = """
import django
django.setup()
from a2a_tasks.telemetry import tracing
from a2a_tasks.telemetry.provider import start_provider
start_provider()
with tracing.span("the last"):
    pass
print("made")
"""
#: The same, with time for its last spans also on a busy machine.
PATIENT = ENDS.replace(
    "start_provider()\n",
    "from a2a_tasks.telemetry import provider\nprovider.FLUSH_SECONDS = 30.0\nstart_provider()\n",
)
#: The same, with a span of a framework before it that quotes half of a surrogate pair in its name and its exception.
QUOTES = PATIENT.replace(
    "with tracing",
    """
import contextlib
from opentelemetry import trace
with contextlib.suppress(ValueError), trace.get_tracer("framework").start_as_current_span("tool \\ud83d") as span:
    span.add_event("called \\ud83d", {"of": "model"})
    raise ValueError("unknown tool \\ud83d")
with tracing""",
)


def test_of_the_project_stays(spans: Spans, settings: Settings) -> None:
    settings.A2A_TRACES = True
    start_provider()
    assert trace.get_tracer_provider() is spans.provider


def test_is_none_without_the_setting_or_the_packages(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before = trace.get_tracer_provider()
    start_provider()
    settings.A2A_TRACES = True
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    start_provider()
    assert trace.get_tracer_provider() is before
    assert "pip install 'a2a-host[otel]'" in caplog.text


def test_sends_the_last_spans_when_the_process_ends() -> None:
    with (
        collector() as made,
        python(["-c", PATIENT], made.environ | {"OTEL_BSP_SCHEDULE_DELAY": "60000"}),
    ):
        (span,) = made.wait_named("the last")
    assert span.process["service.name"] == "a2a-host"
    assert str(span.process["service.instance.id"]).rpartition(":")[2].isdigit()


def test_sends_spans_with_half_of_a_surrogate_pair_and_those_of_others_in_their_batch() -> None:
    with (
        collector() as made,
        python(["-c", QUOTES], made.environ | {"OTEL_BSP_SCHEDULE_DELAY": "60000"}),
    ):
        (span,) = made.wait_named("tool \\ud83d")
        assert made.wait_named("the last")
    assert span.failed
    assert span.events == ["called \\ud83d", "exception"]


def test_lets_the_process_end_although_the_collector_hangs_or_is_away() -> None:
    with collector() as made:
        made.answers.clear()
        for url in (made.url, "http://127.0.0.1:9"):
            environ = {**made.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": url}
            with python(["-c", ENDS], environ) as child:
                child.wait_for("made")
                assert child.process.wait(20) == 0  # the SDK itself would wait for 30 s
