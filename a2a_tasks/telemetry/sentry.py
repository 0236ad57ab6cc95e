"""The scrubber for Sentry: `sentry_sdk.init(before_send=scrub)`. The host itself does not need `sentry_sdk`."""

from __future__ import annotations

from typing import Any

from a2a_tasks.telemetry import log_context
from a2a_tasks.telemetry.redaction import redact_value

__all__ = ["scrub"]


#: Parts of an event that may have content of clients or bare arguments of a log line, where no name tells a secret.
LEFT_OUT = {
    "request": ("cookies", "data", "env", "query_string"),
    "logentry": ("params",),
}


def scrub(event: Any, hint: Any) -> Any:
    """Return a new event of Sentry without credentials, with task, agent, run, attempt, tenant and request as tags.

    An event for which this raises is not sent (`before_send` of sentry_sdk). `hint` is not used.
    """
    scrubbed = redact_value(event)
    for part, names in LEFT_OUT.items():
        for name in names:
            scrubbed.get(part, {}).pop(name, None)
    known = {name: str(value) for name, value in log_context.members(log_context.current()).items()}
    scrubbed["tags"] = {**scrubbed.get("tags", {}), **known}
    return scrubbed
