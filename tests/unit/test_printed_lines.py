"""Printed lines in a log: a line is one entry, whatever pieces it was printed in."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest

from a2a_tasks.telemetry.printed_lines import MAX_LENGTH, PrintedLines


@pytest.fixture
def stream(caplog: pytest.LogCaptureFixture) -> Iterator[PrintedLines]:
    """A stream whose lines are captured."""
    with caplog.at_level(logging.INFO, "printed"):
        yield PrintedLines(io.StringIO(), "printed", logging.INFO)


def test_a_line_is_one_entry_whatever_pieces_it_comes_in(
    stream: PrintedLines, caplog: pytest.LogCaptureFixture
) -> None:
    print("one", 2, file=stream)
    print("three ", end="", file=stream)
    print("four\n\n  five\nsix", end="", file=stream)
    assert caplog.messages == ["one 2", "three four", "  five"]
    print(file=stream)
    assert caplog.messages[3:] == ["six"]


def test_a_line_without_an_end_is_not_kept_for_ever(
    stream: PrintedLines, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        stream.write("x" * (MAX_LENGTH // 2 + 1))
    assert [len(message) for message in caplog.messages] == [MAX_LENGTH + 2]


def test_what_a_handler_prints_goes_to_the_stream_itself() -> None:
    below = io.StringIO()
    stream = PrintedLines(below, "printed.by", logging.INFO)

    class Printing(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            print(f"<{record.getMessage()}>", file=stream)

    logger, handler = logging.getLogger("printed.by"), Printing()
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        print("one", file=stream)
    finally:
        logger.removeHandler(handler)
    assert below.getvalue() == "<one>\n"


def test_it_has_the_encoding_of_the_replaced_stream() -> None:
    """Libraries encode with it before they print."""
    below = io.TextIOWrapper(io.BytesIO(), "ascii", "backslashreplace")
    stream = PrintedLines(below, "printed", logging.INFO)
    assert (stream.encoding, stream.errors) == ("ascii", "backslashreplace")
