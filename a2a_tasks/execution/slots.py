"""The slots of a process: a limit on its concurrent runs, and on those of one quota key.

Some slots stay free for new keys: a key gets no more while it has `KEPT` times as many as are free. A single key
gets nine tenths of all; two that want all get 95 % together, and so on, so that the next key always finds a slot. If
there are fewer than ten slots, none is kept free. `A2A_RUN_SLOTS_PER_TENANT` also limits a key.

A run also needs bytes, for its message, the request and its memory; of these a key gets no more than nine tenths either.

A run of a synchronous agent also needs a thread, and one of an agent with `runs_in = "process"` a process. A process takes
no more runs of a kind than it can execute. The others wait in the table, where other processes find them.

These are the dynamic thresholds of Choudhury and Hahne (IEEE/ACM Transactions on Networking, 1998), by which a switch
shares its memory among ports. See docs/decisions/0007.
"""

from __future__ import annotations

import contextlib
import enum
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping

from a2a_tasks.agents import Agent
from a2a_tasks.conf import conf
from a2a_tasks.store.records import CLAIM_BYTES

__all__ = ["KEPT", "AgentKind", "Place", "SlotLender", "Slots"]

#: Largest ratio of a quota key's slots to the free slots.
KEPT = 9
#: Bytes of messages, requests and memory after which a process takes no more runs. Each is in memory twice: as text, and
#: decoded.
RUN_BYTES = 256 * 1024 * 1024
#: Least number of runs that may wait in memory for other tasks beside those that have a slot.
MIN_WAITING = 100
#: Least number of those in processes of their own, which need memory.
MIN_WAITING_PROCESSES = 8


class AgentKind(enum.Enum):
    """The place where an agent's `run` is executed."""

    LOOP = enum.auto()  #: on the event loop
    THREAD = enum.auto()  #: in one of the A2A_AGENT_THREADS
    PROCESS = enum.auto()  #: in one of the A2A_AGENT_PROCESSES

    @classmethod
    def of(cls, agent: Agent | None) -> AgentKind:
        """Return the kind of an agent; None = an agent that is not hosted here."""
        if agent is None:
            return cls.LOOP
        if agent.runs_in == "process":
            return cls.PROCESS
        return cls.THREAD if agent.synchronous else cls.LOOP


#: By what a run is counted: its quota key, its kind, and its bytes.
Place = tuple[str, AgentKind, int]


class Slots:
    """The count of a process's runs: in total, by quota key (`Caller.quota_key`), and by kind of agent."""

    def __init__(
        self,
        count: int,
        limits: Mapping[AgentKind, Callable[[], int]] | None = None,
        *,
        most_bytes: int | None = None,
    ) -> None:
        """Make `count` slots; `limits` returns the maximum of runs of a kind, if it has one."""
        #: Bytes: the limit, those that are free, those by quota key, and those that runs have lent.
        self._most_bytes = self._left = most_bytes or RUN_BYTES
        self._bytes: Counter[str] = Counter()
        self._lent_bytes = 0
        #: Number of slots, and number of free slots.
        self.count = self.room = count
        #: Numbers of runs that wait in memory, and have lent their slots.
        self._lent: Counter[AgentKind] = Counter()
        self._limits = limits or {}
        self._taken: Counter[str] = Counter()
        self._kinds: Counter[AgentKind] = Counter()

    def take(self, quota_key: str, kind: AgentKind = AgentKind.LOOP, size: int = 0) -> None:
        """Count one run more of this key, kind and size."""
        self._left -= size
        self._bytes[quota_key] += size
        self.room -= 1
        self._taken[quota_key] += 1
        self._kinds[kind] += 1

    def free(self, quota_key: str, kind: AgentKind = AgentKind.LOOP, size: int = 0) -> bool:
        """Count one run less of this key, kind and size; return whether a due run may have waited for the slot."""
        # With one more free slot, a full key may have more, too.
        awaited = self.find_room(kind) <= 0 or bool(self.full())
        self.room += 1
        self._left += size
        self._taken[quota_key] -= 1
        self._bytes[quota_key] -= size
        self._kinds[kind] -= 1
        if not self._taken[quota_key]:
            del self._taken[quota_key], self._bytes[quota_key]
        return awaited

    def resize(self, quota_key: str, before: int, after: int) -> bool:
        """Count a run of this key with another size; return whether a due run may have waited for these bytes."""
        awaited = max(self._bytes.values()) >= KEPT * self._left
        self._left += before - after
        self._bytes[quota_key] += after - before
        return awaited and after < before

    def lend(self, quota_key: str, kind: AgentKind, size: int = 0) -> None:
        """Count slot and bytes of a run that waits in memory as free: the tasks that it waits for may need them."""
        self._lent[kind] += 1
        self._lent_bytes += size
        self.free(quota_key, kind, size)

    def take_back(self, quota_key: str, kind: AgentKind, size: int = 0) -> None:
        """Count them as taken again. For a while there may be more runs than slots."""
        self._lent[kind] -= 1
        self._lent_bytes -= size
        self.take(quota_key, kind, size)

    def may_lend(self, kind: AgentKind) -> bool:
        """Return whether one more run of this kind may wait in memory for other tasks."""
        if self._lent_bytes >= self._most_bytes:
            return False
        if kind is AgentKind.PROCESS:
            return self._lent[kind] < max(self._limits[kind](), MIN_WAITING_PROCESSES)
        return self._lent.total() < max(self.count, MIN_WAITING)

    def find_room(self, kind: AgentKind) -> int:
        """Return how many more runs of this kind can be executed."""
        if self._left <= 0:
            return 0
        limit = self._limits.get(kind)
        return self.room if limit is None else min(self.room, limit() - self._kinds[kind])

    def full(self) -> Collection[str]:
        """Return the quota keys that have all the slots or bytes that they may have now."""
        slots, most = self._limit_per_key(), KEPT * max(0, self._left)
        taken = self._taken.items()
        return [key for key, runs in taken if runs >= slots or self._bytes[key] >= most]

    def at_once(self) -> int:
        """Return how many runs of unknown keys can be taken so that no key exceeds its limit."""
        if self._left <= 0:
            return 0
        bound = self._limit_per_key()
        fullest = max((taken for taken in self._taken.values() if taken < bound), default=0)
        # In the worst case one key takes all of them, and each leaves one free slot less.
        until_kept = math.ceil((KEPT * self.room - fullest) / (KEPT + 1))
        return min(
            self.room, until_kept, (int(conf.RUN_SLOTS_PER_TENANT) or self.room + fullest) - fullest
        )

    def bytes_at_once(self) -> int:
        """Return the bytes after which a claim ends, so that no key exceeds its part by more than a run."""
        most = KEPT * max(0, self._left)
        fullest = max((size for size in self._bytes.values() if size < most), default=0)
        return min(CLAIM_BYTES, math.ceil((most - fullest) / (KEPT + 1)))

    def _limit_per_key(self) -> int:
        """Return the number of slots at which a quota key gets no more now."""
        kept = KEPT * max(0, self.room)
        return min(kept, int(conf.RUN_SLOTS_PER_TENANT) or kept)


class SlotLender:
    """The slot of one run, which others may have while the run waits in memory for other tasks.

    As many runs of a process may wait so as it has slots, but at least MIN_WAITING, and as many in processes of their own as
    there are such, but at least MIN_WAITING_PROCESSES.
    """

    def __init__(
        self,
        slots: Slots,
        quota_key: str,
        kind: AgentKind,
        size: int = 0,
        *,
        freed: Callable[[], None],
        spare: Callable[[int], None],
    ) -> None:
        """`freed` is called when others may have the slot; `spare` counts threads that wait, and take no jobs."""
        self._slots, self._place = slots, (quota_key, kind, size)
        self._freed, self._spare = freed, spare
        self._waits, self._is_over = 0, False

    @property
    def has_room(self) -> bool:
        """True if the run waits already, or may."""
        return self._waits > 0 or self._slots.may_lend(self._place[1])

    @contextlib.contextmanager
    def lend(self, *, in_thread: bool) -> Iterator[None]:
        """Let others have the slot, and the thread that waits, as long as the block lasts."""
        self._waits += 1
        if self._waits == 1 and not self._is_over:
            self._slots.lend(*self._place)
            self._freed()
        self._spare(1 if in_thread else 0)
        try:
            yield
        finally:
            self._spare(-1 if in_thread else 0)
            self._waits -= 1
            if not (self._waits or self._is_over):
                self._slots.take_back(*self._place)

    def end(self) -> None:
        """Take the slot back, because the run has ended; a wait that goes on has no slot to lend."""
        if self._waits and not self._is_over:
            self._slots.take_back(*self._place)
        self._is_over = True
