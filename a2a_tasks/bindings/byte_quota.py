"""Bytes that several holders may have together."""

from __future__ import annotations

__all__ = ["ByteQuota"]


class ByteQuota:
    """The number of bytes that several holders may have together.

    A holder gets no more than is then left for others, so that a few cannot use up everything: one alone gets half of
    it, two get a third each.
    """

    def __init__(self, limit: int, whole: ByteQuota | None = None) -> None:
        """`whole`: a quota in which this one is itself a holder."""
        self._limit, self._whole = limit, whole
        self.used = 0

    def take(self, size: int, held: int) -> bool:
        """Count bytes for a holder that has `held` of them already; False = they are too many."""
        if held + size > self._limit - self.used - size:
            return False
        if self._whole is not None and not self._whole.take(size, self.used):
            return False
        self.used += size
        return True

    def give_back(self, size: int) -> None:
        """Release bytes."""
        self.used -= size
        if self._whole is not None:
            self._whole.give_back(size)
