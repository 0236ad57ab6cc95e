"""A bucket of tokens: so many at once, and so many a second."""

from __future__ import annotations

__all__ = ["Bucket"]


class Bucket:
    """Full at first."""

    def __init__(self, most: float, per_second: float) -> None:
        self._most, self._per_second = most, per_second
        self._left, self._at = most, 0.0

    def take(self, now: float, tokens: float = 1) -> bool:
        """Take tokens; False when there are not as many any more. Time never goes back."""
        came = (now - self._at) * self._per_second
        self._left = min(self._most, self._left + came) - tokens
        self._at = now
        return self._left >= 0

    def put(self, tokens: float = 1) -> None:
        """Put some back."""
        self._left = min(self._most, self._left + tokens)
