"""Sending webhooks: due ones are taken by a lease, sent, and what became of them is written down before anything else is.

One `Deliverer` a process, on one event loop: a worker's own, or the web process's on the embedded host. Hints tell it which
tasks have new events; without any, the sweep finds them (law 1).
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import functools
import logging
import random
import time
import weakref
from collections import Counter, deque
from collections.abc import Iterable, Iterator

from django.utils import timezone

from a2a_push import counters, keys
from a2a_push.envelope import Prepared, prepared
from a2a_push.retry_schedule import Again, Disable, GiveUp, Uncounted, decide, spared
from a2a_push.sender import Delivered, Outcome, Refused, Sender
from a2a_push.store import taking
from a2a_push.store.configs import opened
from a2a_push.store.presence import Presence, anybody
from a2a_push.store.records import Candidate, Fenced, Held, Result
from a2a_push.store.settling import SLOW_SECONDS, Settling, settling
from a2a_tasks import failpoints, lifetime, process, wakeups
from a2a_tasks.conf import conf
from a2a_tasks.failpoints import failpoint
from a2a_tasks.outages import Outage
from a2a_tasks.outbound import Kind, Unanswered
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.sealing import Unreadable
from a2a_tasks.store.hop import hop, outcome

__all__ = ["Deliverer", "begin", "wake"]

logger = logging.getLogger(__name__)
_blind = Outage(logger, "no look at due webhooks")
_own = Outage(logger, "webhooks wait, by no fault of their receivers")

#: Seconds in which hints are gathered before they lead to a look.
GATHER_SECONDS = 0.005
#: Webhooks taken in one transaction.
BATCH = 64
#: Webhooks remembered as due of a receiver that is well, and of one in doubt, which has one slot: the others are found
#: by the sweep when these are done. Each receiver has its own, so that none fills up what others need.
MOST_WELL, MOST_DOUBTFUL = 2000, 4
#: Bytes of large bodies that a process holds at once; the others wait in the table, and small ones pass them.
MOST_BYTES = 64 * 1024 * 1024
#: Hints that wait for a look; the oldest give way.
MOST_NAMED = 100_000
#: What part of the slots receivers may have that are slow, refuse, or are new.
DOUBTFUL_SHARE = 0.5
#: Seconds after which a webhook with more to be told of gives its slot to one that waits.
TURN_SECONDS = 10.0
#: Seconds beyond two attempts for which a webhook is held: for the database to take the outcome.
LEASE_MARGIN = 5.0
#: Seconds between two attempts to write down an outcome.
AGAIN_SECONDS = 0.3
#: Seconds that what is being taken gets beyond the drain.
TAKE_SECONDS = 0.5


class _Waiting:
    """Webhooks known to be due, in the order of their receivers' turns. Only hints: whoever takes them looks again."""

    def __init__(self) -> None:
        self._by_receiver: dict[int, dict[int, Candidate]] = {}
        self._count = 0

    def __bool__(self) -> bool:
        return self._count > 0

    def __contains__(self, receiver: int) -> bool:
        return receiver in self._by_receiver

    def put(self, candidate: Candidate, most: int) -> bool:
        """Remember a webhook, once. False if its receiver has as many as it may."""
        mine = self._by_receiver.setdefault(candidate.receiver, {})
        if candidate.config in mine:
            return True
        if len(mine) >= most:
            return False
        self._count += 1
        mine[candidate.config] = candidate
        return True

    def receivers(self) -> list[int]:
        """Who waits, longest first."""
        return list(self._by_receiver)

    def pop(self, receiver: int, most: int) -> Iterator[Candidate]:
        """Take up to `most` of a receiver's webhooks; it is the last in line then."""
        mine = self._by_receiver.pop(receiver)
        for config in list(mine)[:most]:
            self._count -= 1
            yield mine.pop(config)
        if mine:
            self._by_receiver[receiver] = mine


class Deliverer:
    """Sends up to `slots` notifications at a time. Make it in the loop it is to run on, then `start`."""

    def __init__(
        self, *, slots: int | None = None, sender: Sender | None = None, alone: bool = False
    ) -> None:
        """`alone`: webhooks are registered by this process. Then it asks about no event while there are none."""
        self._slots = int(conf.WEBHOOK_SLOTS) if slots is None else slots
        self._sender = sender or Sender()
        self._loop = asyncio.get_running_loop()
        self._look = asyncio.Event()
        #: Tasks a hint has named.
        self._named: deque[int] = deque(maxlen=MOST_NAMED)
        #: The loop was told of them.
        self._roused = False
        self._waiting = _Waiting()
        #: What is under way, by the keys of the webhooks.
        self._sends: dict[int, asyncio.Task[None]] = {}
        self._holds: dict[int, Held] = {}
        #: How many bytes of large bodies are among it.
        self._bytes = 0
        #: Webhooks whose large bodies there was no room for, and their sizes, longest waiting first.
        self._large: dict[int, tuple[Candidate, int]] = {}
        #: How many are under way to each receiver.
        self._busy: Counter[int] = Counter()
        #: Receivers that were well when last heard of, as long as anything waits for them or is under way.
        self._well: dict[int, bool] = {}
        #: Whose they are.
        self._tenant: dict[int, str] = {}
        #: Receivers with more that is due than is remembered.
        self._crowded: set[int] = set()
        #: When the sweep goes on, by the loop's clock, and after which webhook.
        self._sweeps_at, self._swept = 0.0, 0
        self._alone = alone
        #: What `Presence` said when there was no active webhook.
        self._nobody: int | None = None
        #: Set once the table was looked at: this process can work.
        self.looked = asyncio.Event()
        self._stack = contextlib.ExitStack()
        self._elsewhere = wakeups.Subscriber(self._hear, everything=True)
        self._main: asyncio.Task[None] | None = None
        self._draining = False
        self.worker = process.name()

    @property
    def sending(self) -> int:
        """How many webhooks are in this process's hands."""
        return len(self._sends)

    def start(self) -> None:
        """Begin to listen, look and send."""
        self._stack.enter_context(wakeups.listen(self._heard))
        self._elsewhere.start()
        self._main = asyncio.create_task(self._for_ever())

    # --- knowing what is due ----------------------------------------------------------------

    def wake(self) -> None:
        """Anything may be due: sweep now. Thread-safe."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._sweep_now)

    def _sweep_now(self) -> None:
        self._sweeps_at = 0.0
        self._look.set()

    def _heard(self, hint: wakeups.Hint) -> None:
        """A hint of this process, in any thread."""
        if isinstance(hint, wakeups.Committed) and self._nobody != Presence.count:
            self._named.append(hint.task)
            if not self._roused:  # once for many: whoever writes is not to be slowed down
                self._roused = True
                with contextlib.suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._look.set)

    def _hear(self, hint: wakeups.Hint) -> None:
        if isinstance(hint, wakeups.Committed) and self._nobody != Presence.count:
            self._named.append(hint.task)
            self._look.set()

    async def _for_ever(self) -> None:
        while not self._draining:
            try:
                await self._round()
                self.looked.set()
            except Overloaded as fault:  # the database is away: look again
                _blind.count(fault.__cause__ or fault)
                self._sweeps_at = self._loop.time() + float(conf.POLL_SECONDS)
            except Exception:
                logger.exception("a look at due webhooks failed")
                self._sweeps_at = self._loop.time() + float(conf.POLL_SECONDS)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(self._sweeps_at):
                    await self._look.wait()
                    await asyncio.sleep(GATHER_SECONDS)

    async def _round(self) -> None:
        self._look.clear()
        self._roused = False
        for first in range(0, known := len(self._named), taking.SLICE):
            some = range(min(known - first, taking.SLICE))
            self._note(await hop(taking.due_of, {self._named.popleft() for _ in some}))
        if self._loop.time() >= self._sweeps_at:
            await self._sweep()
        await self._take()

    async def _sweep(self) -> None:
        """One slice of all active webhooks. Then a rest as long as it took, or until the next time."""
        begun, known = self._loop.time(), Presence.count
        found, self._swept = await hop(taking.sweep, self._swept)
        self._note(found)
        now = self._loop.time()
        self._sweeps_at = now + (now - begun if self._swept else float(conf.POLL_SECONDS))
        if not self._swept:
            self._forget()
            self._nobody = known if self._alone and not await hop(anybody) else None

    def _forget(self) -> None:
        """Forget how those are of whom nothing is known to be due."""
        busy = self._waiting.receivers() + list(self._busy)
        self._well = {receiver: self._well.get(receiver, False) for receiver in busy}
        self._tenant = {receiver: self._tenant.get(receiver, "") for receiver in busy}

    def _note(self, candidates: Iterable[Candidate]) -> None:
        for candidate in candidates:
            if candidate.wait > 0:
                self._loop.call_later(candidate.wait, self._note_due, candidate)
            else:
                self._put(candidate)

    def _note_due(self, candidate: Candidate) -> None:
        self._put(candidate)
        self._look.set()

    def _put(self, candidate: Candidate) -> None:
        if candidate.config in self._sends or candidate.config in self._large:
            return
        well = self._well.setdefault(candidate.receiver, candidate.well)
        self._tenant[candidate.receiver] = candidate.tenant
        if not self._waiting.put(candidate, MOST_WELL if well else MOST_DOUBTFUL):
            self._crowded.add(candidate.receiver)

    # --- taking -----------------------------------------------------------------------------

    async def _take(self) -> None:
        while not self._draining and (chosen := self._chosen()):
            until = self._loop.time() + lease_seconds()
            # Its end is waited for: what is taken and not known would wait for the end of its lease.
            taken = await outcome(
                taking.take,
                [candidate.config for candidate in chosen],
                worker=self.worker,
                lease_seconds=lease_seconds(),
                room=self._room,
            )
            if taken.held:
                failpoint("webhook.claimed")
            for held in taken.held:
                self._carry(held, until)
            for candidate in chosen:
                self._put_back(candidate, taken.left.get(candidate.config))

    @property
    def _room(self) -> int:
        """How many more bytes of large bodies this process takes."""
        return MOST_BYTES - self._bytes

    def _put_back(self, candidate: Candidate, size: int | None) -> None:
        """Take a webhook that was left: at once, or with `size` once there is room for it. None = it was not."""
        if size and self._room <= 0:
            self._large[candidate.config] = candidate, size
        elif size is not None:
            self._put(candidate)

    def _put_large(self) -> None:
        """Take as many of those that wait for room as there is room for."""
        room = self._room
        while room > 0 and self._large:
            candidate, size = self._large.pop(next(iter(self._large)))
            room -= size
            self._put(candidate)

    def _chosen(self) -> list[Candidate]:
        """Webhooks there is room for, the receivers' in turn; none is sent more than it can bear."""
        chosen: list[Candidate] = []
        if not self._waiting:
            return []
        room = self._slots - len(self._sends)
        doubtful_room = max(1, int(self._slots * DOUBTFUL_SHARE)) - self._doubtful()
        for receiver in self._in_turn(doubtful_room):
            well = self._well.get(receiver, False)
            most = min(self._cap(receiver) - self._busy[receiver], room, BATCH - len(chosen))
            most = most if well else min(most, doubtful_room)
            if most <= 0:
                continue
            taken = list(self._waiting.pop(receiver, most))
            chosen += taken
            room -= len(taken)
            doubtful_room -= 0 if well else len(taken)
        return chosen

    def _in_turn(self, doubtful_room: int) -> list[int]:
        """Whose turn it is: who waits longest, but of those in doubt the ones of tenants that have fewest of such slots.

        Or whoever has a thousand addresses that hang would keep out those nobody has met.
        """
        waiting = self._waiting.receivers()
        doubtful = [receiver for receiver in waiting if not self._well.get(receiver)]
        if not doubtful:
            return waiting
        if doubtful_room <= 0:
            return [receiver for receiver in waiting if self._well.get(receiver)]
        held, ranks = self._held_in_doubt(), {}
        for receiver in doubtful:
            tenant = self._tenant.get(receiver, "")
            ranks[receiver] = held[tenant]
            held[tenant] += 1
        turns = iter(sorted(doubtful, key=ranks.__getitem__))
        return [receiver if self._well.get(receiver) else next(turns) for receiver in waiting]

    def _held_in_doubt(self) -> Counter[str]:
        """How many are under way to receivers that are not well, by tenant."""
        held: Counter[str] = Counter()
        for receiver, count in self._busy.items():
            if not self._well.get(receiver):
                held[self._tenant.get(receiver, "")] += count
        return held

    def _doubtful(self) -> int:
        """How many are under way to receivers that are not well."""
        return self._held_in_doubt().total()

    def _cap(self, receiver: int) -> int:
        return int(conf.WEBHOOK_RECEIVER_SLOTS) if self._well.get(receiver) else 1

    # --- sending ----------------------------------------------------------------------------

    def _carry(self, held: Held, until: float) -> None:
        self._well[held.receiver] = held.well
        self._busy[held.receiver] += 1
        self._hold(held)
        task = self._sends[held.config] = self._loop.create_task(self._send_all(held, until))
        task.add_done_callback(functools.partial(self._done, held))

    def _hold(self, held: Held) -> None:
        """Note what is being sent to a webhook, in place of what was."""
        before = self._holds.get(held.config)
        self._bytes += held.large - (before.large if before else 0)
        self._holds[held.config] = held

    def _done(self, held: Held, task: asyncio.Task[None]) -> None:
        if self._sends.get(held.config) is task:
            del self._sends[held.config]
            self._bytes -= self._holds.pop(held.config).large
            self._put_large()
        self._busy[held.receiver] -= 1
        if not self._busy[held.receiver]:
            del self._busy[held.receiver]
        if held.receiver not in self._waiting and not self._busy[held.receiver]:
            self._well.pop(held.receiver, None)
            self._tenant.pop(held.receiver, None)
        if held.receiver in self._crowded and held.receiver not in self._waiting:
            self._crowded.discard(held.receiver)
            self._sweep_now()
        if self._waiting:
            self._look.set()

    async def _send_all(self, held: Held, until: float) -> None:
        """Send to one webhook what is due to it, one after the other, each settled before the next.

        It is held until that moment of the loop's clock, and with each that is settled as long again.
        """
        following: Held | None = held
        begun = self._loop.time()
        try:
            while following is not None:
                held = following
                self._hold(held)
                result = await self._attempt(held, until)
                following, until = await self._settled(held, result, begun)
        except Fenced:
            logger.info(
                "webhook %s is another's now; what it answered is not recorded", held.config
            )
        except Overloaded as fault:  # nothing is lost: the lease ends, and it is sent again
            logger.warning(
                "what webhook %s answered is not recorded: %s", held.config, fault.__cause__
            )
        except Exception:
            logger.exception("webhook %s could not be settled", held.config)

    async def _attempt(self, held: Held, until: float) -> Result:
        """Send once. Raises Fenced, and nothing else, whatever the receiver does, or the config holds."""
        started_at = timezone.now()
        with counters.under_way.track_inprogress():
            outcome = await self._outcome(held, until)
        failpoint("webhook.answered")
        if isinstance(outcome, Delivered):
            self._well[held.receiver] = outcome.seconds < SLOW_SECONDS
        elif outcome.kind is Kind.HOST:
            _own.count(Unanswered(outcome.kind, outcome.detail))
        else:
            self._well[held.receiver] = False
        return self._result(held, outcome, started_at)

    async def _outcome(self, held: Held, until: float) -> Outcome:
        """What became of it; what goes wrong on this side is the host's own fault. Raises Fenced."""
        try:
            return await self._sent(_request(held), until)
        except Fenced:
            raise
        except Unreadable:
            detail = "no key of this host opens the webhook's secrets"
        except Exception as fault:
            logger.exception("webhook %s could not be sent", held.config)
            detail = f"it could not be sent: {type(fault).__name__}"
        return Refused(Kind.HOST, None, 0.0, "", None, detail)

    async def _sent(self, request: Prepared, until: float) -> Outcome:
        failpoint("webhook.row_written")
        if self._loop.time() + float(conf.WEBHOOK_SECONDS) > until:
            raise Fenced  # this process was frozen: others may send it, or have
        if not failpoints.ON:
            return await self._sender.send(request)
        sending = asyncio.create_task(self._sender.send(request))
        await asyncio.wait({sending}, timeout=failpoints.STRIKING)
        failpoint("webhook.sent")
        return await sending

    def _result(self, held: Held, outcome: Outcome, started_at: datetime.datetime) -> Result:
        refused = outcome if isinstance(outcome, Refused) else None
        ended = str(refused.kind) if refused else counters.DELIVERED
        counters.attempts.labels(ended).observe(outcome.seconds)
        return Result(
            started_at=started_at,
            seconds=outcome.seconds,
            status=outcome.status,
            fault=refused.kind if refused else "",
            excerpt=outcome.excerpt,
            detail=refused.detail if refused else "",
            verdict=_verdict(held, refused) if refused else None,
            worker=self.worker,
        )

    async def _settled(self, held: Held, result: Result, begun: float) -> tuple[Held | None, float]:
        """Write down what became of it, while the database is away as long as the webhook is held. Raises Fenced, Overloaded.

        Returns what comes next, and until when that is held.
        """
        give_up_at = self._loop.time() + lease_seconds() - result.seconds
        while True:
            asked = self._loop.time()
            seconds = None if self._has_to_end(begun) else lease_seconds()
            settled = Settling(held, result, seconds, room=self._room + held.large)
            try:
                return await settling(settled), asked + lease_seconds()
            except Overloaded:
                if self._loop.time() >= give_up_at:
                    raise
            await asyncio.sleep(AGAIN_SECONDS)

    def _has_to_end(self, begun: float) -> bool:
        """Is whoever has sent to one webhook since `begun` to let go of it, though there may be more to send?"""
        return self._draining or (bool(self._waiting) and self._loop.time() - begun >= TURN_SECONDS)

    # --- ending -----------------------------------------------------------------------------

    def stop_claiming(self) -> None:
        """Take no more. Thread-safe."""
        self._draining = True
        self.wake()

    async def drain(self, seconds: float) -> None:
        """Stop taking, let requests on their way end for that long, then give the rest back for others to send."""
        self.stop_claiming()
        end = self._loop.time() + seconds
        if self._main:  # what it is taking has to be given back as well
            await asyncio.wait([self._main], timeout=seconds + TAKE_SECONDS)
            self._main.cancel()
        if self._sends:
            await asyncio.wait(self._sends.values(), timeout=max(0.0, end - self._loop.time()))
        try:
            await self._give_back()
        finally:
            self._stack.close()
            await self._elsewhere.close()
            await self._sender.close()

    async def _give_back(self) -> None:
        left, holds = list(self._sends.values()), list(self._holds.values())
        for task in left:
            task.cancel()
        if holds:
            await asyncio.wait(left, timeout=TAKE_SECONDS)
            await hop(taking.give_back, holds)


def _request(held: Held) -> Prepared:
    """The request of this attempt. Raises Unreadable."""
    target = opened(held.target, held.secret)
    return prepared(
        held.told,
        target,
        keys.ring(),
        tenant=held.tenant,
        issuer=keys.issuer(),
        now=time.time(),
    )


def _verdict(held: Held, refused: Refused) -> Again | GiveUp | Disable | Uncounted:
    scale, now = float(conf.WEBHOOK_TIME_SCALE), time.time()
    own = refused.kind is Kind.HOST
    if own and (later := spared(held.made_at.timestamp(), now, scale=scale)):
        return later
    return decide(held.attempt, refused, now, random.random(), scale=scale)  # noqa: S311 - spreads load


def lease_seconds() -> float:
    """How long a webhook is held: for an attempt, and as long again for its outcome to be written."""
    return 2 * float(conf.WEBHOOK_SECONDS) + LEASE_MARGIN


# --- the process's own ----------------------------------------------------------------------------

_deliverers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Deliverer] = (
    weakref.WeakKeyDictionary()
)


async def begin(*, alone: bool = False) -> asyncio.Event:
    """Start this process's deliverer, once a loop. What is returned is set once it can work. `alone`: see Deliverer."""
    loop = asyncio.get_running_loop()
    found = _deliverers.get(loop)
    if found is None:
        found = _deliverers[loop] = Deliverer(alone=alone)
        found.start()
        lifetime.on_drain(found.stop_claiming)
        lifetime.on_stop(functools.partial(_drain, found))
    return found.looked


async def _drain(deliverer: Deliverer) -> None:
    await deliverer.drain(lifetime.drain_left())


def wake() -> None:
    """Have this process's deliverer sweep now, if there is one. Thread-safe."""
    for deliverer in list(_deliverers.values()):
        deliverer.wake()
