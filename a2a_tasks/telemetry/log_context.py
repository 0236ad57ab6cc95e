"""The request and the run in which a log line is made. Handlers read them; setting them costs less than a microsecond."""

from __future__ import annotations

from contextvars import ContextVar
from typing import NamedTuple

__all__ = ["LogContext", "current", "members"]


class LogContext(NamedTuple):
    """The request and the run; an empty value, or 0, is unknown."""

    #: `X-Request-ID` of the request; in a run, of the one that sent its message.
    request_id: str = ""
    #: The id of the task.
    task: str = ""
    #: The slug of the agent.
    agent: str = ""
    #: The number of the run, and of its attempt.
    run: int = 0
    attempt: int = 0
    tenant: str = ""


_UNKNOWN = LogContext()
#: That of the present task or thread, and of those that it starts from now on.
current: ContextVar[LogContext] = ContextVar("a2a_log_context", default=_UNKNOWN)


def members(context: LogContext) -> dict[str, str | int]:
    """Return the known fields by name."""
    return {name: value for name, value in context._asdict().items() if value}
