"""How many calls are open in a server: every one of them may wait for its message, or follow a task for hours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from a2a_tasks.conf import conf
from a2a_tasks.protocol.errors import RateLimited

__all__ = ["OpenCalls"]

#: Seconds after which it is worth trying again.
LATER = 1.0


class OpenCalls:
    """Counts them; those of health and reflection are not among them."""

    def __init__(self) -> None:
        self._count = 0

    @contextmanager
    def one_more(self) -> Iterator[None]:
        """One more, as long as it lasts. Raises RateLimited if there are A2A_GRPC_CALLS already."""
        most = int(conf.GRPC_CALLS)
        if most and self._count >= most:
            raise RateLimited.until(LATER, "Too many calls are open")
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1
