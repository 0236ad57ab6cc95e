"""The order of due webhooks: a queue for each receiver, served in turn, so that no receiver delays others.

The queues are in memory and only hints: a claim reads the table again. Everything runs on one event loop.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from a2a_push.store.records import Candidate
from a2a_tasks.conf import conf

__all__ = ["ReceiverQueue", "ReceiverQueues"]

#: Webhooks claimed in one transaction.
BATCH = 64
#: Maximum number of due webhooks remembered of a healthy receiver, and of one in doubt, which has one slot; the sweep
#: finds the others when these are done. Each receiver has its own limit, so that none uses up the room of others.
MAX_WELL, MAX_DOUBTFUL = 2000, 4
#: The part of the slots for receivers in doubt: those that are slow, refuse, or are new.
DOUBTFUL_SHARE = 0.5


@dataclass(slots=True)
class ReceiverQueue:
    """One receiver: its waiting webhooks, and its requests under way."""

    tenant: str
    #: True if it accepted the last notification quickly. Otherwise it is in doubt, and gets one request at a time.
    well: bool
    #: Due webhooks, by their keys.
    waiting: dict[int, Candidate] = field(default_factory=dict)
    #: The number of requests under way.
    sending: int = 0
    #: True if more webhooks are due than are remembered.
    crowded: bool = False

    @property
    def free(self) -> int:
        """The number of further requests it may get now."""
        return (int(conf.WEBHOOK_RECEIVER_SLOTS) if self.well else 1) - self.sending

    @property
    def is_idle(self) -> bool:
        """True if nothing waits for it or is under way."""
        return not self.waiting and not self.sending


class ReceiverQueues:
    """The queues of a process with a number of slots."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        #: By receiver; among those with waiting webhooks, the longest waiting one is first.
        self._queues: dict[int, ReceiverQueue] = {}
        self._waiting = self._sending = 0

    def __bool__(self) -> bool:
        """Return whether any webhook waits."""
        return self._waiting > 0

    def put(self, candidate: Candidate) -> None:
        """Remember a due webhook, once, up to the receiver's limit."""
        queue = self._queues.get(candidate.receiver)
        if queue is None:
            queue = ReceiverQueue(candidate.tenant, candidate.well)
            self._queues[candidate.receiver] = queue
        elif not queue.waiting:
            self._move_to_end(candidate.receiver)
        queue.tenant = candidate.tenant
        if candidate.config in queue.waiting:
            return
        if len(queue.waiting) >= (MAX_WELL if queue.well else MAX_DOUBTFUL):
            queue.crowded = True
            return
        queue.waiting[candidate.config] = candidate
        self._waiting += 1

    def choose(self) -> list[Candidate]:
        """Take webhooks for the free slots, the receivers in turn, each within its own limit."""
        chosen: list[Candidate] = []
        room = self._slots - self._sending
        # Requests under way to receivers in doubt, by tenant.
        doubtful: Counter[str] = Counter()
        for queue in self._queues.values():
            if queue.sending and not queue.well:
                doubtful[queue.tenant] += queue.sending
        doubtful_room = max(1, int(self._slots * DOUBTFUL_SHARE)) - doubtful.total()
        for receiver in self._list_turns(doubtful, doubtful_room):
            queue = self._queues[receiver]
            limit = min(queue.free, room, BATCH - len(chosen))
            limit = limit if queue.well else min(limit, doubtful_room)
            if limit <= 0:
                continue
            taken = list(queue.waiting)[:limit]
            chosen += [queue.waiting.pop(config) for config in taken]
            self._move_to_end(receiver)
            self._waiting -= len(taken)
            room -= len(taken)
            doubtful_room -= 0 if queue.well else len(taken)
        return chosen

    def begin(self, receiver: int, tenant: str, *, well: bool) -> None:
        """Count a request that begins; `well` is the value in the table."""
        queue = self._queues.setdefault(receiver, ReceiverQueue(tenant, well))
        queue.well = well
        queue.sending += 1
        self._sending += 1

    def end(self, receiver: int) -> bool:
        """Count a request that ended. Returns whether only a sweep finds the receiver's other due webhooks."""
        queue = self._queues[receiver]
        queue.sending -= 1
        self._sending -= 1
        if queue.is_idle:
            del self._queues[receiver]
        swept = queue.crowded and not queue.waiting
        queue.crowded = queue.crowded and not swept
        return swept

    def set_well(self, receiver: int, *, well: bool) -> None:
        """Record whether a receiver accepted a request that is under way quickly."""
        self._queues[receiver].well = well

    def forget_idle(self) -> None:
        """Forget receivers without known due webhooks."""
        self._queues = {r: queue for r, queue in self._queues.items() if not queue.is_idle}

    def _move_to_end(self, receiver: int) -> None:
        self._queues[receiver] = self._queues.pop(receiver)

    def _list_turns(self, sending: Counter[str], doubtful_room: int) -> list[int]:
        """Return the receivers, longest waiting first; those in doubt ordered by their tenants' number of slots.

        Otherwise a tenant with a thousand hanging addresses would keep out new receivers.
        """
        waiting = [receiver for receiver, queue in self._queues.items() if queue.waiting]
        doubtful = [receiver for receiver in waiting if not self._queues[receiver].well]
        if not doubtful:
            return waiting
        if doubtful_room <= 0:
            return [receiver for receiver in waiting if self._queues[receiver].well]
        sending, ranks = sending.copy(), {}
        for receiver in doubtful:
            tenant = self._queues[receiver].tenant
            ranks[receiver] = sending[tenant]
            sending[tenant] += 1
        turns = iter(sorted(doubtful, key=ranks.__getitem__))
        return [receiver if self._queues[receiver].well else next(turns) for receiver in waiting]
