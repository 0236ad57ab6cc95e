"""Nobody writes a line into the host's log by what he calls his task."""

from __future__ import annotations

import io
import logging
import logging.config
import sys
from typing import Any

import pytest
from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.test import RequestFactory

from a2a_project.log_format import SingleLineFormatter
from tests.support.rows import rows

FORGED = (
    "x\n2026-11-22 00:00:00,000 WARNING a2a_tasks.access somebody was let in\x1b[2J\u2028\x85\r"
)


def record(text: str, *args: object) -> logging.LogRecord:
    return logging.LogRecord("a2a_tasks", logging.INFO, "", 0, text, args, None)


def test_a_line_of_the_log_is_one_line_whatever_a_task_is_called() -> None:
    line = SingleLineFormatter().format(record("task %s ended", FORGED))
    assert line.splitlines() == [line]
    assert line.isprintable()
    assert " INFO a2a_tasks task x\\n2026-11-22" in line


def test_a_trace_stands_below_its_line_and_no_line_of_it_looks_like_one_of_the_log() -> None:
    told = record("it failed")
    try:
        raise ValueError(FORGED)
    except ValueError:
        told.exc_info = sys.exc_info()
    first, second, *rest = SingleLineFormatter().format(told).splitlines()
    assert first.endswith(" INFO a2a_tasks it failed")
    assert second == "  Traceback (most recent call last):"
    assert rest
    for line in (second, *rest):
        assert line.startswith("  ")
        assert line.isprintable()


@pytest.mark.parametrize("place", ["message", "trace", "stack"])
def test_a_long_line_keeps_its_ends(place: str) -> None:
    text = f"begin{'x' * 1_000_000}end"
    told = record(text if place == "message" else "it failed")
    told.exc_text = text if place == "trace" else None
    told.stack_info = text if place == "stack" else None
    line = SingleLineFormatter().format(told)
    assert "beginx" in line
    assert line.endswith("xend")
    assert "[cut, 1000008 characters]" in line
    assert len(line) < 17_000


@pytest.mark.parametrize("secret", ["canary0123456789", "password=canary0123456789"])
def test_arguments_that_do_not_fit_are_not_shown(
    secret: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python would print them, as they are, beside the log."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(SingleLineFormatter())
    handler.handle(record("%s and %s", secret))
    assert " INFO a2a_tasks %s and %s (tuple of arguments: not enough" in written.getvalue()
    assert "canary" not in written.getvalue() + capsys.readouterr().err


def test_every_line_of_the_host_is_written_so() -> None:
    formatters: Any = settings.LOGGING["formatters"]
    assert formatters["line"]["()"] is SingleLineFormatter


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What the host's own settings write."""
    written = io.StringIO()
    logging.config.dictConfig(settings.LOGGING)
    (own,) = (each for each in logging.getLogger().handlers if each.name == "stderr")
    monkeypatch.setattr(own, "stream", written)
    return written


def test_what_django_refuses_of_a_client_is_one_line_and_no_error(log: io.StringIO) -> None:
    try:
        RequestFactory(headers={"host": "another.example"}).get("/").get_host()
    except DisallowedHost:
        logging.getLogger("django.security.DisallowedHost").exception("Invalid HTTP_HOST")
    (line,) = log.getvalue().splitlines()
    assert line.endswith(" WARNING django.security.DisallowedHost Invalid HTTP_HOST")


@rows("name", ["django.security.DisallowedHost", "django.request"])
def test_a_long_head_or_path_of_a_stranger_fills_no_log(name: str, log: io.StringIO) -> None:
    logging.getLogger(name).warning("Invalid HTTP_HOST header: %r", "a" * 16_000)
    line = log.getvalue().splitlines()[-1]
    assert "cut, 16028 characters" in line
    assert len(line) < 1200
