"""Throttled lines of the log."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from a2a_tasks import outages

NAME = "tests.throttled"


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    """A logger of a library, with a filter."""
    logger, throttle = logging.getLogger(NAME), outages.ThrottleFilter()
    logger.addFilter(throttle)
    yield logger
    logger.removeFilter(throttle)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The seconds of the clock, the last of which counts."""
    seconds = [100.0]
    monkeypatch.setattr("a2a_tasks.outages.time.monotonic", lambda: seconds[-1])
    yield seconds


def test_repeated_lines_of_a_library_are_summed_up(
    logger: logging.Logger, clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    for seconds in (0.0, outages.INTERVAL_SECONDS - 1, outages.INTERVAL_SECONDS):
        clock.append(100.0 + seconds)
        for number in range(500):
            logger.warning("bad request %d of %s", number, "a stranger")
        logger.warning("another line")
    assert [record.getMessage() for record in caplog.records] == [
        "bad request 0 of a stranger",
        "another line",
        "bad request 0 of a stranger (1000 times)",
        "another line (2 times)",
    ]


@pytest.mark.usefixtures("clock")
def test_errors_are_told_apart_by_where_they_come_from(
    logger: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        for value in ("x", None):
            try:
                int(value)  # type: ignore[arg-type]
            except (TypeError, ValueError):
                logger.exception("Server error")
    assert [type(record.exc_info[1]) for record in caplog.records if record.exc_info] == [
        ValueError,
        TypeError,
    ]


@pytest.mark.usefixtures("clock")
def test_the_number_of_kinds_is_bounded(logger: logging.Logger) -> None:
    (throttle,) = logger.filters
    assert isinstance(throttle, outages.ThrottleFilter)
    for number in range(1000):
        logger.handle(logging.LogRecord(NAME, logging.INFO, "file", number, "text", (), None))
    assert len(throttle._kinds) <= outages.MAX_KINDS
