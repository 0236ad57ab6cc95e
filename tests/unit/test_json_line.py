"""A line of the JSON log: one object, bounded, without credentials, of any record."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

import pytest
from opentelemetry import trace

from a2a_project.json_line import MAX_BYTES, JsonFormatter
from a2a_tasks.audit import act_as
from a2a_tasks.telemetry import log_context
from a2a_tasks.telemetry.log_context import LogContext
from tests.unit.test_log_line import FORGED, record

CANARY = "canary0123456789"


def write(told: logging.LogRecord) -> dict[str, Any]:
    """The line, as a reader of the log has it."""
    line = JsonFormatter().format(told)
    assert line.splitlines() == [line]
    assert line.isprintable()
    assert len(line.encode()) <= MAX_BYTES
    found: dict[str, Any] = json.loads(line)
    return found


def test_it_has_the_time_in_utc_and_nothing_that_is_unknown() -> None:
    told = record("task %s ended", 7)
    told.created = 1_795_000_000.0129
    assert write(told) == {
        "ts": "2026-11-18T11:06:40.012Z",
        "level": "INFO",
        "logger": "a2a_tasks",
        "message": "task 7 ended",
    }


def test_it_names_the_request_the_run_and_the_span() -> None:
    token = log_context.current.set(LogContext("r-1", "t-1", "demo", 3, 2, "acme"))
    span = trace.NonRecordingSpan(trace.SpanContext(0xABC, 0xDEF, is_remote=False))
    try:
        with trace.use_span(span):
            line = write(record("x"))
    finally:
        log_context.current.reset(token)
    assert [line[name] for name in ("request_id", "task", "agent", "run", "attempt", "tenant")] == [
        *("r-1", "t-1", "demo", 3, 2, "acme")
    ]
    assert (line["trace_id"], line["span_id"]) == (f"{0xABC:032x}", f"{0xDEF:016x}")


def test_it_names_the_request_to_a_page() -> None:
    with act_as(lambda: "staff:1", "page-1"):
        assert write(record("x"))["request_id"] == "page-1"


def test_what_a_client_says_comes_back_as_it_was() -> None:
    assert write(record("task %s ended", FORGED))["message"] == f"task {FORGED} ended"


def test_a_lone_surrogate_is_written_as_python_writes_it() -> None:
    told = record("\ud800 %s", "\udfff")
    told.name, told.about = "\ud800", "\ud800"
    line = write(told)
    assert line["message"] == "\\ud800 \\udfff"
    assert (line["logger"], line["extra"]) == ("\\ud800", {"about": "\\ud800"})


def test_no_part_has_a_secret() -> None:
    told = record("password=%s", CANARY)
    told.api_key, told.about, told.stack_info = CANARY, f"Bearer {CANARY}", f"token={CANARY}"
    try:
        raise ValueError(f"secret={CANARY}")
    except ValueError:
        told.exc_info = sys.exc_info()
    line = write(told)
    assert CANARY not in str(line)
    assert line["extra"] == {"about": "Bearer [redacted]", "api_key": "[redacted]"}
    assert line["exception"].endswith("ValueError: secret=[redacted]\ntoken=[redacted]")


@pytest.mark.parametrize("character", ["x", "\x00", "\x7f", "é", "💥", "\ud800", "password=yes "])
def test_a_long_record_is_cut_and_keeps_its_ends(character: str) -> None:
    told = record(f"begin {character * 300_000} end")
    told.exc_text = f"Traceback {character * 300_000} ValueError: bad"
    told.__dict__.update({f"n{i}" * 100: character * 100_000 for i in range(50)})
    line = write(told)
    assert line["message"].startswith("begin ")
    assert line["message"].endswith(" end")
    assert "[cut, " in line["message"]
    assert line["exception"].endswith("ValueError: bad")


@pytest.mark.parametrize("shift", range(0, 40, 3))
def test_no_secret_is_cut_in_two(shift: int) -> None:
    line = write(record("x" * (8192 - shift) + f" password={CANARY} " + "y" * 40_000))
    assert not any(part in line["message"] for part in ("canary", "0123", "6789"))


class Broken:
    """An argument with no text."""

    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (record("%s and %s", 1), "%s and %s (tuple of arguments: not enough arguments for"),
        (record("of %s", Broken()), "of %s (tuple of arguments: no)"),
        (record(Broken()), "a line of :0 could not be written: RuntimeError"),  # type: ignore[arg-type]
    ],
)
def test_a_record_that_cannot_be_formatted_is_told_of(
    told: logging.LogRecord, message: str
) -> None:
    assert write(told)["message"].startswith(message)


def test_values_that_are_no_texts_and_numbers_are_left_out() -> None:
    told = record("x")
    told.__dict__ |= {"a": 1, "b": 2**70, "c": float("nan"), "d": {"e": 1}, "f": True, "g": None}
    assert write(told)["extra"] == {"a": 1, "f": True}


@pytest.mark.parametrize(
    "about",
    [
        {"created": float("nan")},
        {"created": 1e300},
        {"created": "now"},
        {"name": None},
        {"levelname": "L" * 200_000},
    ],
    ids=["no number", "no year", "no time", "no name", "long level"],
)
def test_a_record_that_no_logger_makes_is_written_too(about: dict[str, Any]) -> None:
    assert write(logging.makeLogRecord({"msg": "hello", **about}))["message"] == "hello"
