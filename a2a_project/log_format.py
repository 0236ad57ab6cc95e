"""The formats of the log: a line of text or a JSON object (A2A_LOG_FORMAT). Both are bounded and without credentials.

Words of clients cannot begin another line, nor control a terminal.
"""

from __future__ import annotations

import logging
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from a2a_project.json_line import MAX_LENGTH, JsonFormatter, message_of, trace_of
from a2a_tasks.telemetry.redaction import redact

__all__ = ["FORMATS", "RefusalFilter", "SingleLineFormatter", "UnsentFilter", "make_logging"]

#: Control characters of ASCII and Latin-1, and the separators of Unicode, as Python writes them.
ESCAPED = {
    code: repr(chr(code))[1:-1] for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)
}
#: Maximum number of characters of what Django says about a request: it has a stranger's path or head.
MAX_REFUSAL = 1024
#: Before each line of a traceback: only a line of the log begins with a time.
INDENT = "  "


class RefusalFilter(logging.Filter):
    """Logs a request that Django refuses, such as one with a wrong `Host`, as a warning of one short line."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record if it is such a line, and keep it."""
        if record.name.startswith(("django.security.", "django.request")):
            record.msg, record.args = redact(message_of(record), MAX_REFUSAL), ()
        if record.name.startswith("django.security."):
            record.levelno, record.levelname = logging.WARNING, "WARNING"
            record.exc_info = record.exc_text = None
        return True


class UnsentFilter(logging.Filter):
    """Logs that beat could not send a job as one line, without two stacks of 200: while the broker is away it tries on."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record if it is such a line, and keep it."""
        # by its name: processes without Celery log, too
        if record.exc_info and getattr(record.exc_info[0], "__name__", "") == "SchedulingError":
            record.msg, record.args = message_of(record).partition("\n")[0], ()
            record.exc_info = record.exc_text = None
        return True


class SingleLineFormatter(logging.Formatter):
    """Writes a record as one line of at most 16 KiB of message. A traceback follows, as long, on indented lines.

    Control characters are escaped.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, and the traceback, without credentials."""
        # Python would print arguments that do not fit, as they are.
        message = redact(message_of(record), MAX_LENGTH)
        at, level, name = self.formatTime(record), record.levelname, record.name
        lines = [f"{at} {level} {name} {message}"]
        if trace := trace_of(record, self):
            lines += [INDENT + line for line in redact(trace, MAX_LENGTH).split("\n")]
        return "\n".join(line.translate(ESCAPED) for line in lines)


#: The formats by their names in A2A_LOG_FORMAT.
FORMATS = {"text": SingleLineFormatter, "json": JsonFormatter}


def make_logging(level: str, style: str = "text") -> dict[str, Any]:
    """Return Django's LOGGING: one line on the standard error output for each entry of this level or above.

    `style` is A2A_LOG_FORMAT. Raises ImproperlyConfigured for an unknown one.
    """
    if style not in FORMATS:
        raise ImproperlyConfigured(f"A2A_LOG_FORMAT must be text or json, not {style!r}")
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": FORMATS[style]}},
        "filters": {
            "refusals": {"()": RefusalFilter},
            "unsent": {"()": UnsentFilter},
            "production": {"()": "django.utils.log.RequireDebugFalse"},
        },
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                # text for sys.stderr may become log lines
                "stream": "ext://a2a_tasks.telemetry.patient_stream.stderr",
                "formatter": "line",
                "filters": ["refusals"],
            },
            "mail_admins": {
                "class": "django.utils.log.AdminEmailHandler",
                "level": "ERROR",
                "filters": ["production"],
            },
        },
        "loggers": {
            # without Django's own handlers, which write text
            "django": {"handlers": ["mail_admins"]},
            "django.server": {"handlers": [], "propagate": True},
            # two lines per hint or sign-in are useless
            "axes": {"level": "WARNING"},
            "celery.beat": {"filters": ["unsent"]},
            "celery.worker.strategy": {"level": "WARNING"},
            "celery.app.trace": {"level": "WARNING"},
        },
        "root": {"handlers": ["stderr"], "level": level},
    }
