"""The trace context of headers: what is sound is kept, what is broken is ignored, and nothing of it is logged."""

from __future__ import annotations

import json

import pytest

from a2a_tasks.telemetry.trace_context import NONE, DeadAttempt, TraceContext, note_death, trace_in

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SPAN}-01"


class TestHeaders:
    def test_that_are_sound_come_back_as_they_are(self) -> None:
        found = TraceContext.read({"traceparent": PARENT, "tracestate": "ot=th:8 , a@b=1"})
        assert found == (PARENT, "ot=th:8 , a@b=1")
        of_span = TraceContext.of(found.within(int(SPAN, 16)))
        assert of_span == (PARENT, "ot=th:8,a@b=1")

    def test_of_a_later_version_are_read_as_the_present_one(self) -> None:
        assert TraceContext.read({"traceparent": f"cc{PARENT[2:]}"}) == (PARENT, "")

    @pytest.mark.parametrize(
        "parent",
        [
            "",
            "00",
            "x" * 1024 * 1024,
            f"00-{'0' * 32}-{SPAN}-01",
            f"00-{TRACE}-{'0' * 16}-01",
            f"ff-{TRACE}-{SPAN}-01",
            PARENT.upper(),
            f"{PARENT}-more",
            f"{PARENT},{PARENT}",
            f"00-{TRACE[:-1]}g-{SPAN}-01",
        ],
        ids=lambda parent: parent[:20],
    )
    def test_with_a_broken_parent_are_none(
        self, parent: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        assert TraceContext.read({"traceparent": parent, "tracestate": "a=1"}) == NONE
        assert not caplog.records

    @pytest.mark.parametrize(
        "state",
        ["a=1,a=2", "A=1", "a", "a=" + "x" * 1024 * 1024, "a=\x00secret", "=", ",", "a=1,,b=2"],
        ids=lambda state: state[:10],
    )
    def test_with_a_broken_state_keep_the_parent_alone(
        self, state: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        found = TraceContext.read({"traceparent": PARENT, "tracestate": state})
        assert found == (PARENT, "")
        assert TraceContext.of(found.within(int(SPAN, 16))) == found
        assert not caplog.records


class TestADeath:
    def test_is_noted_in_the_request_of_a_run_with_a_trace(self) -> None:
        stored = json.dumps({"metadata": {"a": 1}, "trace": [PARENT, ""]})
        noted = note_death(stored, DeadAttempt("00000000000000ff", 1.0, 2.0))
        died = ["00000000000000ff", 1.0, 2.0]
        assert json.loads(noted) == {**json.loads(stored), "died": died}
        assert trace_in(noted) == (PARENT, "")

    def test_changes_no_request_without_a_trace(self) -> None:
        for stored in ("", "{}", '{"metadata":{"trace":1}}'):
            assert note_death(stored, DeadAttempt.of("token", 0.0)) == stored
            assert trace_in(stored) == NONE
