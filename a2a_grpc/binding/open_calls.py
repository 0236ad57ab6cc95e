"""The number of open calls in a server: each may wait for its message, or follow a task for hours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from a2a_tasks.conf import conf
from a2a_tasks.protocol.errors import RateLimited

__all__ = ["OpenCalls"]

#: Seconds after which a client may try again.
LATER = 1.0


class OpenCalls:
    """The count of open calls, without those of health and reflection."""

    def __init__(self) -> None:
        self._count = 0

    @contextmanager
    def one_more(self) -> Iterator[None]:
        """Count one call until the block ends. Raises RateLimited if A2A_GRPC_CALLS are open already."""
        limit = int(conf.GRPC_CALLS)
        if limit and self._count >= limit:
            raise RateLimited.until(LATER, "Too many calls are open")
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1
