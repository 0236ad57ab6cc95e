"""A line of the log is one line: what a client has named cannot begin another one, nor drive a terminal."""

from __future__ import annotations

import logging

__all__ = ["LogLine"]

#: Control characters of ASCII and Latin-1, and the separators of Unicode, as Python writes them.
ESCAPED = {
    code: repr(chr(code))[1:-1] for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)
}


class LogLine(logging.Formatter):
    """Escapes control characters in messages. Traces, which come below, are as they are."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - its name in logging
        record.message = record.message.translate(ESCAPED)
        return super().formatMessage(record)
