"""The scrubber for Sentry: `sentry_sdk.init(before_send=scrub)`. The host itself does not need `sentry_sdk`."""

from __future__ import annotations

from typing import Any

from a2a_tasks.telemetry import log_context
from a2a_tasks.telemetry.redaction import redact_value

__all__ = ["scrub"]


#: Parts of an event with content of clients, or with arguments of log lines, which have no names that mark secrets.
LEFT_OUT = {
    "request": ("cookies", "data", "env", "query_string"),
    "logentry": ("params",),
}


def scrub(event: Any, hint: Any) -> Any:
    """Return a new event of Sentry without credentials, with task, agent, run, attempt, tenant and request as tags.

    If this raises, `sentry_sdk` does not send the event. `hint` is not used.
    """
    # Before the redaction, which would read all of a client's body.
    left = {
        part: {name: value for name, value in event[part].items() if name not in names}
        for part, names in LEFT_OUT.items()
        if event.get(part)
    }
    scrubbed = redact_value({**event, **left})
    known = {
        name: str(value) for name, value in log_context.members(log_context.current.get()).items()
    }
    scrubbed["tags"] = {**scrubbed.get("tags", {}), **known}
    return scrubbed
