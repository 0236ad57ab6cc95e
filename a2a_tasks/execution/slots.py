"""The slots of a process: a limit on its concurrent runs, and on those of one share.

Some slots stay free for new shares: a share gets no more while it has `KEPT` times as many as are free. A single share
gets nine tenths of all; two that want all get 95 % together, and so on, so that the next share always finds a slot. If
there are fewer than ten slots, none is kept free. `A2A_RUN_SLOTS_PER_TENANT` also limits a share.

These are the dynamic thresholds of Choudhury and Hahne (IEEE/ACM Transactions on Networking, 1998), by which a switch
shares its memory among ports. See docs/decisions/0007.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection

from a2a_tasks.conf import conf

__all__ = ["KEPT", "Slots"]

#: Largest ratio of a share's slots to the free slots.
KEPT = 9


class Slots:
    """The count of a process's runs, in total and by share (`Caller.quota_key`)."""

    def __init__(self, count: int) -> None:
        #: Number of slots, and number of free slots.
        self.count = self.room = count
        self._taken: Counter[str] = Counter()

    def take(self, quota_key: str) -> None:
        """Count one run more of this share."""
        self.room -= 1
        self._taken[quota_key] += 1

    def free(self, quota_key: str) -> bool:
        """Count one run less of this share; return whether a due run may have waited for the slot."""
        # With one more free slot, a full share may have more, too.
        awaited = self.room <= 0 or bool(self.full())
        self.room += 1
        self._taken[quota_key] -= 1
        if not self._taken[quota_key]:
            del self._taken[quota_key]
        return awaited

    def full(self) -> Collection[str]:
        """Return the shares that have all the slots that they may have now."""
        bound = self._limit_share()
        return [share for share, taken in self._taken.items() if taken >= bound]

    def at_once(self) -> int:
        """Return how many runs of unknown shares can be taken so that no share exceeds its limit."""
        bound = self._limit_share()
        fullest = max((taken for taken in self._taken.values() if taken < bound), default=0)
        # In the worst case one share takes all of them, and each leaves one free slot less.
        until_kept = math.ceil((KEPT * self.room - fullest) / (KEPT + 1))
        return min(
            self.room, until_kept, (int(conf.RUN_SLOTS_PER_TENANT) or self.room + fullest) - fullest
        )

    def _limit_share(self) -> int:
        """Return the number of slots at which a share gets no more now."""
        kept = KEPT * max(0, self.room)
        return min(kept, int(conf.RUN_SLOTS_PER_TENANT) or kept)
