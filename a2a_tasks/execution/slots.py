"""The slots of a process: how many runs it carries at once, and how many of them may be one share's.

Some stay free for whoever comes next: a share gets no more while it has `KEPT` times as many as are free. Alone it has
nine tenths of all; two that want all have 95 % together, and so on, so that there is a slot for the next one whoever is
there already. Of fewer than ten slots none is kept. `A2A_RUN_SLOTS_PER_TENANT` bounds a share besides.

These are the dynamic thresholds of Choudhury and Hahne (IEEE/ACM Transactions on Networking, 1998), by which a switch
shares its memory among ports. See docs/decisions/0108.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection

from a2a_tasks.conf import conf

__all__ = ["KEPT", "Slots"]

#: How many times as many slots a share may have as are free.
KEPT = 9


class Slots:
    """Counts the runs in a process's hands, in all and by share (`Caller.share`)."""

    def __init__(self, count: int) -> None:
        #: How many slots there are, and how many of them are free.
        self.count = self.room = count
        self._taken: Counter[str] = Counter()

    def take(self, share: str) -> None:
        """One more run of this share."""
        self.room -= 1
        self._taken[share] += 1

    def free(self, share: str) -> bool:
        """One less; may somebody have been waiting for the slot?"""
        awaited = self.room <= 0 or bool(
            self.full()
        )  # another's end leaves more to a full one, too
        self.room += 1
        self._taken[share] -= 1
        if not self._taken[share]:
            del self._taken[share]
        return awaited

    def full(self) -> Collection[str]:
        """The shares that have as many slots as they may have now."""
        bound = self._bound()
        return [share for share, taken in self._taken.items() if taken >= bound]

    def at_once(self) -> int:
        """How many runs can be taken, whose share is not known yet, so that no share gets more than it may."""
        bound = self._bound()
        fullest = max((taken for taken in self._taken.values() if taken < bound), default=0)
        # While one share takes so many, what is free for each next one of them is less by one.
        until_kept = math.ceil((KEPT * self.room - fullest) / (KEPT + 1))
        return min(
            self.room, until_kept, (int(conf.RUN_SLOTS_PER_TENANT) or self.room + fullest) - fullest
        )

    def _bound(self) -> int:
        """A share that has so many slots gets no more at this moment."""
        kept = KEPT * max(0, self.room)
        return min(kept, int(conf.RUN_SLOTS_PER_TENANT) or kept)
