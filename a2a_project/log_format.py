"""The formats of the log: a line of text or a JSON object (A2A_LOG_FORMAT). Both are without credentials.

Names from clients cannot begin another line, nor control a terminal.
"""

from __future__ import annotations

import datetime
import logging
from typing import Any

import msgspec
from django.core.exceptions import ImproperlyConfigured
from opentelemetry import trace

from a2a_tasks.audit.actor import request_id
from a2a_tasks.telemetry import log_context
from a2a_tasks.telemetry.redaction import redact, redact_ends, redact_value

__all__ = ["FORMATS", "JsonFormatter", "RefusalFilter", "SingleLineFormatter", "make_logging"]

#: Control characters of ASCII and Latin-1, and the separators of Unicode, as Python writes them.
ESCAPED = {
    code: repr(chr(code))[1:-1] for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)
}
#: Those that JSON may contain, as JSON writes them.
ESCAPED_IN_JSON = {code: f"\\u{code:04x}" for code in ESCAPED if code >= 0x7F}  # noqa: PLR2004 - DEL
#: Maximum size of a JSON line, in bytes.
MAX_BYTES = 64 * 1024
#: Characters of a message or a traceback; of longer ones, both ends are kept.
MAX_LENGTH = 16 * 1024
#: Maximum number of further values of a line (`extra=`), of characters of a name, and of a value.
MAX_EXTRA, MAX_NAME, MAX_VALUE = 20, 64, 1024
#: Attributes of every record, and of those of libraries that repeat the message.
USUAL = {*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName", "color_message"}


class RefusalFilter(logging.Filter):
    """Logs a request that Django refuses, such as one with a wrong `Host`, as a warning of one line."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record if it is such a line, and keep it."""
        if record.name.startswith("django.security."):
            record.levelno, record.levelname = logging.WARNING, "WARNING"
            record.exc_info = record.exc_text = None
        return True


class SingleLineFormatter(logging.Formatter):
    """Escapes control characters in messages. Tracebacks follow on lines of their own."""

    def __init__(self) -> None:
        super().__init__("{asctime} {levelname} {name} {message}", style="{")

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, and the traceback, without credentials."""
        return redact(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - its name in logging
        record.message = record.message.translate(ESCAPED)
        return super().formatMessage(record)


class JsonFormatter(logging.Formatter):
    """Writes a record as one JSON object of at most 64 KiB, with what is known of its request and run.

    `ts` is in UTC (RFC 3339, with milliseconds), `exception` is the traceback, `extra` has values that the code gave.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line. Never raises: a record that cannot be formatted is named by its place."""
        try:
            length = MAX_LENGTH
            while len(line := _write(self._describe(record, length))) > MAX_BYTES:
                length //= 4
        except Exception as fault:  # noqa: BLE001 - a line of the log must not cost a request
            where = f"{record.pathname}:{record.lineno}"
            message = f"a line of {where} could not be written: {type(fault).__name__}"
            line = _write({**_begin(record), "message": message})
        return line.decode()

    def _describe(self, record: logging.LogRecord, length: int) -> dict[str, Any]:
        members = {**_begin(record), "message": redact_ends(_message(record), length)}
        context = log_context.current()
        if name := context.request_id or request_id():
            members["request_id"] = name
        span = trace.get_current_span().get_span_context()
        if span.is_valid:
            members["trace_id"] = trace.format_trace_id(span.trace_id)
            members["span_id"] = trace.format_span_id(span.span_id)
        members.update(log_context.members(context))
        if exception := self._trace(record):
            members["exception"] = redact_ends(exception, length)
        if extra := _extra(record, min(length, MAX_VALUE)):
            members["extra"] = extra
        return members

    def _trace(self, record: logging.LogRecord) -> str:
        """Return the traceback of the record, and its stack, if it has one."""
        exception = self.formatException(record.exc_info) if record.exc_info else record.exc_text
        return "\n".join(filter(None, (exception, record.stack_info)))


def _begin(record: logging.LogRecord) -> dict[str, Any]:
    at = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
    ts = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"ts": ts, "level": record.levelname, "logger": record.name[:MAX_VALUE]}


def _message(record: logging.LogRecord) -> str:
    """Return the message; of one that its arguments do not fit, the text without them."""
    try:
        return record.getMessage()
    except Exception as fault:  # noqa: BLE001 - the repr of an argument may raise anything
        return f"{record.msg} ({record.args.__class__.__name__} of arguments: {fault})"


def _extra(record: logging.LogRecord, length: int) -> dict[str, Any]:
    """Return the values of `extra=` that are texts or numbers, as many as a line may have, with texts of this length."""
    extra = {}
    for name in sorted(record.__dict__.keys() - USUAL)[:MAX_EXTRA]:
        value = record.__dict__[name]
        if isinstance(value, str):
            extra[name[:MAX_NAME]] = redact_value(redact_ends(value, length), name)
        elif (
            isinstance(value, int | float) and abs(value) < 2**63
        ):  # larger than JSON's readers take
            extra[name[:MAX_NAME]] = redact_value(value, name)
    return extra


def _write(members: dict[str, Any]) -> bytes:
    """Return JSON in which each character can be shown."""
    try:
        line = msgspec.json.encode(members)
    except UnicodeEncodeError:
        line = msgspec.json.encode(_sound(members))
    return line.decode().translate(ESCAPED_IN_JSON).encode()


def _sound(value: Any) -> Any:
    """Return a value with lone surrogates as Python writes them."""
    if isinstance(value, dict):
        return {_sound(name): _sound(member) for name, member in value.items()}
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value


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
            "production": {"()": "django.utils.log.RequireDebugFalse"},
        },
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "stream": "ext://sys.__stderr__",  # text for sys.stderr may become log lines
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
            "celery.worker.strategy": {"level": "WARNING"},
            "celery.app.trace": {"level": "WARNING"},
        },
        "root": {"handlers": ["stderr"], "level": level},
    }
