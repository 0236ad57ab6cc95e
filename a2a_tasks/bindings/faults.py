"""One place where exceptions become answers: nothing of Python or the database ever leaves."""

from __future__ import annotations

import logging

from a2a_tasks.access.challenges import challenges
from a2a_tasks.agents import Agent
from a2a_tasks.bindings.http import Headers
from a2a_tasks.outages import Outage
from a2a_tasks.protocol.errors import (
    A2AError,
    InternalError,
    MethodNotAllowed,
    Overloaded,
    RateLimited,
)

__all__ = ["headers_of", "told"]

logger = logging.getLogger(__name__)
_overload = Outage(logger, "a request was turned away")


def told(fault: Exception) -> A2AError:
    """The error a client is told of; what is unforeseen is logged and told as an internal error."""
    if isinstance(fault, A2AError):
        if (
            isinstance(fault, Overloaded | RateLimited) and fault.__cause__ is None
        ):  # else the store has told
            _overload.count(fault)
        return fault
    logger.error("a request failed", exc_info=fault)
    return InternalError()


def headers_of(fault: A2AError, agent: Agent | None = None) -> Headers:
    """The headers that go with an error, of an agent if it is one's."""
    if isinstance(fault, MethodNotAllowed):
        return [(b"allow", fault.metadata.get("allow", "").encode())]
    if isinstance(fault, Overloaded | RateLimited):
        return [(b"retry-after", fault.metadata.get("retry_after", "1").encode())]
    return [(b"www-authenticate", text.encode()) for text in challenges(fault, agent)]
