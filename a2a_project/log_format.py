"""The format of the log, one line each: names from clients cannot begin another line, nor control a terminal."""

from __future__ import annotations

import logging
from typing import Any

__all__ = ["RefusalFilter", "SingleLineFormatter", "make_logging"]

#: Control characters of ASCII and Latin-1, and the separators of Unicode, as Python writes them.
ESCAPED = {
    code: repr(chr(code))[1:-1] for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)
}


class RefusalFilter(logging.Filter):
    """Logs a request that Django refuses, such as one with a wrong `Host`, as a warning of one line."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record if it is such a line, and keep it."""
        if record.name.startswith("django.security."):
            record.levelno, record.levelname = logging.WARNING, "WARNING"
            record.exc_info = record.exc_text = None
        return True


class SingleLineFormatter(logging.Formatter):
    """Escapes control characters in messages. Tracebacks, which follow, stay unchanged."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - its name in logging
        record.message = record.message.translate(ESCAPED)
        return super().formatMessage(record)


def make_logging(level: str) -> dict[str, Any]:
    """Return Django's LOGGING: one line on the standard error output for each entry of this level or above."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {
                "()": SingleLineFormatter,
                "format": "{asctime} {levelname} {name} {message}",
                "style": "{",
            }
        },
        "filters": {"refusals": {"()": RefusalFilter}},
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": "line",
                "filters": ["refusals"],
            }
        },
        "loggers": {  # two lines per hint or sign-in are useless
            "axes": {"level": "WARNING"},
            "celery.worker.strategy": {"level": "WARNING"},
            "celery.app.trace": {"level": "WARNING"},
        },
        "root": {"handlers": ["stderr"], "level": level},
    }
