"""A limit on what a client may do at once, and in a second."""

from __future__ import annotations

__all__ = ["Pace"]


class Pace:
    """A count that falls with time: so many at once, and so many a second after that."""

    def __init__(self, at_once: int, a_second: int) -> None:
        self._at_once, self._a_second = at_once, a_second
        self._count, self._at = 0.0, 0.0

    def take(self, now: float) -> bool:
        """Count one more at this time, in seconds; False = they are too many."""
        self._count = max(0.0, self._count - (now - self._at) * self._a_second) + 1
        self._at = now
        return self._count <= self._at_once
