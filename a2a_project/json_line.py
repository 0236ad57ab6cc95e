"""A line of the JSON log (A2A_LOG_FORMAT): one object, bounded, without credentials."""

from __future__ import annotations

import datetime
import logging
from typing import Any

import msgspec
from opentelemetry import trace

from a2a_tasks.audit.actor import request_id
from a2a_tasks.telemetry import log_context
from a2a_tasks.telemetry.redaction import redact, redact_value

__all__ = ["MAX_LENGTH", "JsonFormatter", "message_of", "trace_of"]

#: Control characters that JSON may contain, and the separators of Unicode, as JSON writes them.
ESCAPED = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029)}
#: Maximum size of a JSON line, in bytes.
MAX_BYTES = 64 * 1024
#: Maximum number of characters of a message or a traceback; of longer ones, both ends are kept.
MAX_LENGTH = 16 * 1024
#: Maximum number of values of a line (`extra=`), of characters of a name, and of characters of a value.
MAX_EXTRA, MAX_NAME, MAX_VALUE = 20, 64, 1024
#: Attributes that are no `extra=`: those of every record, and copies of the message by libraries.
USUAL = {*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName", "color_message"}


class JsonFormatter(logging.Formatter):
    """Writes a record as one JSON object of at most 64 KiB, which names its request and run.

    `ts` is in UTC (RFC 3339, with milliseconds), `exception` is the traceback, `extra` has values that the code gave.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line. Never raises: a record that cannot be formatted is named by its place in the code."""
        try:
            length = MAX_LENGTH
            while len(line := _write(self._describe(record, length))) > MAX_BYTES and length:
                length //= 4
        except Exception as fault:  # noqa: BLE001 - a line of the log must not cost a request
            where = f"{record.pathname}:{record.lineno}"
            message = f"a line of {where} could not be written: {type(fault).__name__}"
            line = _write({**_begin(record), "message": message})
        return line.decode()

    def _describe(self, record: logging.LogRecord, length: int) -> dict[str, Any]:
        members = {**_begin(record), "message": redact(message_of(record), length)}
        context = log_context.current.get()
        if name := context.request_id or request_id():
            members["request_id"] = name
        span = trace.get_current_span().get_span_context()
        if span.is_valid:
            members["trace_id"] = trace.format_trace_id(span.trace_id)
            members["span_id"] = trace.format_span_id(span.span_id)
        members.update(log_context.members(context))
        if exception := trace_of(record, self):
            members["exception"] = redact(exception, length)
        if extra := _extra(record, min(length, MAX_VALUE)):
            members["extra"] = extra
        return members


def _begin(record: logging.LogRecord) -> dict[str, Any]:
    try:
        at = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
    except (TypeError, ValueError, OverflowError, OSError):  # not a valid time
        at = datetime.datetime.now(datetime.UTC)
    ts = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {
        "ts": ts,
        "level": str(record.levelname)[:MAX_NAME],
        "logger": str(record.name)[:MAX_VALUE],
    }


def message_of(record: logging.LogRecord) -> str:
    """Return the message; if its arguments do not fit, the text without them."""
    try:
        return record.getMessage()
    except Exception as fault:  # noqa: BLE001 - the repr of an argument may raise anything
        return f"{record.msg} ({record.args.__class__.__name__} of arguments: {fault})"


def trace_of(record: logging.LogRecord, formatter: logging.Formatter) -> str:
    """Return the traceback of the record, and its stack; empty = it has none."""
    exception = formatter.formatException(record.exc_info) if record.exc_info else record.exc_text
    return "\n".join(filter(None, (exception, record.stack_info)))


def _extra(record: logging.LogRecord, length: int) -> dict[str, Any]:
    """Return the values of `extra=` that are texts or numbers, as many as a line may have, with texts of this length."""
    extra = {}
    for name in sorted(record.__dict__.keys() - USUAL)[:MAX_EXTRA]:
        value = record.__dict__[name]
        if isinstance(value, str):
            extra[name[:MAX_NAME]] = redact_value(redact(value, length), name)
        elif (
            isinstance(value, int | float) and abs(value) < 2**63
        ):  # readers of JSON may refuse larger ones
            extra[name[:MAX_NAME]] = redact_value(value, name)
    return extra


def _write(members: dict[str, Any]) -> bytes:
    """Return JSON without unprintable characters."""
    try:
        line = msgspec.json.encode(members)
    except UnicodeEncodeError:
        line = msgspec.json.encode(_sound(members))
    return line.decode().translate(ESCAPED).encode()


def _sound(value: Any) -> Any:
    """Return a value with lone surrogates as Python writes them."""
    if isinstance(value, dict):
        return {_sound(name): _sound(member) for name, member in value.items()}
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value
