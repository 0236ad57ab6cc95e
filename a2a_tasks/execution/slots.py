"""The slots of a process: how many runs it carries at once, and how many of them may be one share's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from a2a_tasks.conf import conf

__all__ = ["Slots"]


class Slots:
    """Counts the runs in a process's hands, in all and by share (`Caller.share`)."""

    def __init__(self, count: int) -> None:
        #: How many slots are free.
        self.room = count
        self._taken: Counter[str] = Counter()

    def take(self, share: str) -> None:
        """One more run of this share."""
        self.room -= 1
        self._taken[share] += 1

    def free(self, share: str) -> bool:
        """One less; may somebody have been waiting for the slot?"""
        awaited = self.room <= 0 or share in self.full()
        self.room += 1
        self._taken[share] -= 1
        if not self._taken[share]:
            del self._taken[share]
        return awaited

    def full(self) -> Collection[str]:
        """The shares that have as many slots as A2A_RUN_SLOTS_PER_TENANT lets them."""
        most = int(conf.RUN_SLOTS_PER_TENANT)
        return [share for share, taken in self._taken.items() if taken >= most] if most else ()

    def at_once(self) -> int:
        """How many runs can be taken, whose share is not known yet, so that no share gets more than it may."""
        most = int(conf.RUN_SLOTS_PER_TENANT)
        if not most:
            return self.room
        fullest = max((taken for taken in self._taken.values() if taken < most), default=0)
        return min(self.room, most - fullest)
