"""The translation of exceptions into answers: no detail of Python or the database leaves the host."""

from __future__ import annotations

import logging

from a2a_tasks.access.challenges import challenges
from a2a_tasks.agents import Agent
from a2a_tasks.bindings.http import Headers
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.protocol.errors import (
    A2AError,
    InternalError,
    MethodNotAllowed,
    Overloaded,
    RateLimited,
)

__all__ = ["headers_of", "to_a2a_error"]

logger = logging.getLogger(__name__)
_overload = ThrottledLogger(logger, "a request was turned away")


def to_a2a_error(fault: Exception) -> A2AError:
    """Return the error for the client; an unexpected exception is logged and becomes an internal error."""
    if isinstance(fault, A2AError):
        if (
            isinstance(fault, Overloaded | RateLimited) and fault.__cause__ is None
        ):  # with a cause, the store has logged it
            _overload.warning(fault)
        return fault
    logger.error("a request failed", exc_info=fault)
    return InternalError()


def headers_of(fault: A2AError, agent: Agent | None = None) -> Headers:
    """Return the headers of an error, with an agent's challenges if it belongs to one."""
    if isinstance(fault, MethodNotAllowed):
        return [(b"allow", fault.metadata.get("allow", "").encode())]
    if isinstance(fault, Overloaded | RateLimited):
        return [(b"retry-after", fault.metadata.get("retry_after", "1").encode())]
    return [(b"www-authenticate", text.encode()) for text in challenges(fault, agent)]
