"""One place where exceptions become answers: nothing of Python or the database ever leaves."""

from __future__ import annotations

import logging

from a2a_tasks.bindings.http import Headers
from a2a_tasks.protocol.errors import (
    A2AError,
    InternalError,
    MethodNotAllowed,
    Overloaded,
    Unauthenticated,
)

__all__ = ["headers_of", "told"]

logger = logging.getLogger(__name__)


def told(fault: Exception) -> A2AError:
    """The error a client is told of; what is unforeseen is logged and told as an internal error."""
    if isinstance(fault, A2AError):
        if isinstance(fault, Overloaded):
            logger.warning("a request was turned away: %s", fault.__cause__ or fault)
        return fault
    logger.error("a request failed", exc_info=fault)
    return InternalError()


def headers_of(fault: A2AError) -> Headers:
    """The headers that go with an error."""
    if isinstance(fault, MethodNotAllowed):
        return [(b"allow", fault.metadata.get("allow", "").encode())]
    if isinstance(fault, Overloaded):
        return [(b"retry-after", fault.metadata.get("retry_after", "1").encode())]
    if isinstance(fault, Unauthenticated):
        return [(b"www-authenticate", b"Bearer")]
    return []
