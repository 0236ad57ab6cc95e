"""The delivery of webhooks: due ones are claimed by a lease and sent, and each result is stored before the next step.

There is one `Deliverer` per process, on one event loop: a worker's own, or the web process's on the embedded host.
Hints name the tasks with new events; without any, the sweep finds them (law 1).
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
from collections import deque
from collections.abc import Iterable

from django.utils import timezone

from a2a_push import counters, keys
from a2a_push.envelope import PreparedRequest, prepare
from a2a_push.receiver_queue import ReceiverQueues
from a2a_push.retry_schedule import Disable, GiveUp, Retry, Uncounted, decide, decide_uncounted
from a2a_push.sender import AttemptRefused, Delivered, Outcome, Sender
from a2a_push.store import claims
from a2a_push.store.configs import unseal_secrets
from a2a_push.store.presence import PusherPresence, anybody
from a2a_push.store.records import AttemptResult, Candidate, ClaimedWebhook, WebhookLeaseLost
from a2a_push.store.results import SLOW_SECONDS, SettledAttempt, settle_batched
from a2a_tasks import failpoints, process, process_lifetime, pubsub
from a2a_tasks.conf import conf
from a2a_tasks.failpoints import failpoint
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.outbound import FaultKind, Unanswered
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.sealing import Unsealable
from a2a_tasks.store.db import run_in_thread, run_to_completion

__all__ = ["Deliverer", "begin", "wake"]

logger = logging.getLogger(__name__)
_blind = ThrottledLogger(logger, "due webhooks could not be read")
_own = ThrottledLogger(logger, "webhooks wait, by no fault of their receivers")

#: Seconds in which hints are collected before the table is read.
GATHER_SECONDS = 0.005
#: Maximum bytes of large bodies in a process at once; further ones wait in the table, and small ones pass them.
MAX_BYTES = 64 * 1024 * 1024
#: Maximum number of hints that wait to be handled; the oldest are dropped.
MAX_NAMED = 100_000
#: Seconds after which a webhook with more events gives its slot to a waiting one.
TURN_SECONDS = 10.0
#: Seconds beyond two attempts in the lease of a webhook: for the database to store the result.
LEASE_MARGIN = 5.0
#: Seconds between two attempts to store a result.
AGAIN_SECONDS = 0.3
#: Seconds beyond the drain for a claim that is under way.
TAKE_SECONDS = 0.5


class Deliverer:
    """The sender of up to `slots` notifications at a time. Make it in its event loop, then call `start`."""

    def __init__(
        self, *, slots: int | None = None, sender: Sender | None = None, alone: bool = False
    ) -> None:
        """`alone`: only this process registers webhooks, so it ignores events while there are none."""
        self._sender = sender or Sender()
        self._loop = asyncio.get_running_loop()
        self._look = asyncio.Event()
        #: Tasks named by hints.
        self._named: deque[int] = deque(maxlen=MAX_NAMED)
        #: True if the loop was notified of them.
        self._roused = False
        self._queues = ReceiverQueues(int(conf.WEBHOOK_SLOTS) if slots is None else slots)
        #: The sends under way, by the keys of the webhooks.
        self._sends: dict[int, asyncio.Task[None]] = {}
        self._holds: dict[int, ClaimedWebhook] = {}
        #: Bytes of large bodies among them.
        self._bytes = 0
        #: Webhooks whose large bodies did not fit, and their sizes, the longest waiting first.
        self._large: dict[int, tuple[Candidate, int]] = {}
        #: The time of the next sweep, by the loop's clock, and the webhook it continues after.
        self._sweeps_at, self._swept = 0.0, 0
        self._alone = alone
        #: `PusherPresence.count` at the time when there was no active webhook.
        self._nobody: int | None = None
        #: Set once the table was read: this process is ready.
        self.looked = asyncio.Event()
        self._stack = contextlib.ExitStack()
        self._elsewhere = pubsub.Subscriber(self._hear, everything=True)
        self._main: asyncio.Task[None] | None = None
        self._draining = False
        self.worker = process.name()

    @property
    def sending(self) -> int:
        """The number of webhooks that this process holds."""
        return len(self._sends)

    def start(self) -> None:
        """Begin to receive hints, read the table and send."""
        self._stack.enter_context(pubsub.listen(self._on_hint))
        self._elsewhere.start()
        self._main = asyncio.create_task(self._for_ever())

    # --- knowing what is due ----------------------------------------------------------------

    def wake(self) -> None:
        """Sweep now, since any webhook may be due. Thread-safe."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._sweep_now)

    def _sweep_now(self) -> None:
        self._sweeps_at = 0.0
        self._look.set()

    def _on_hint(self, hint: pubsub.Hint) -> None:
        """Handle a hint of this process, in any thread."""
        if isinstance(hint, pubsub.Committed) and self._nobody != PusherPresence.count:
            self._named.append(hint.task)
            if not self._roused:  # once for many hints, so that writers are not slowed down
                self._roused = True
                with contextlib.suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._look.set)

    def _hear(self, hint: pubsub.Hint) -> None:
        if isinstance(hint, pubsub.Committed) and self._nobody != PusherPresence.count:
            self._named.append(hint.task)
            self._look.set()

    async def _for_ever(self) -> None:
        while not self._draining:
            try:
                await self._round()
                self.looked.set()
            except Overloaded as fault:  # the database is away: try again
                _blind.warning(fault.__cause__ or fault)
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
        for first in range(0, known := len(self._named), claims.SLICE):
            some = range(min(known - first, claims.SLICE))
            self._note(await run_in_thread(claims.due_of, {self._named.popleft() for _ in some}))
        if self._loop.time() >= self._sweeps_at:
            await self._sweep()
        await self._take()

    async def _sweep(self) -> None:
        """Sweep one slice of all active webhooks, then pause as long as it took, or until the next sweep."""
        begun, known = self._loop.time(), PusherPresence.count
        found, self._swept = await run_in_thread(claims.sweep, self._swept)
        self._note(found)
        now = self._loop.time()
        self._sweeps_at = now + (now - begun if self._swept else float(conf.POLL_SECONDS))
        if not self._swept:
            self._queues.forget_idle()
            self._nobody = known if self._alone and not await run_in_thread(anybody) else None

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
        self._queues.put(candidate)

    # --- taking -----------------------------------------------------------------------------

    async def _take(self) -> None:
        while not self._draining and (chosen := self._queues.choose()):
            until = self._loop.time() + lease_seconds()
            # Not cancellable: webhooks claimed without a result would wait for the end of their lease.
            taken = await run_to_completion(
                claims.take,
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
        """The bytes of large bodies that this process can still hold."""
        return MAX_BYTES - self._bytes

    def _put_back(self, candidate: Candidate, size: int | None) -> None:
        """Queue a webhook that was not claimed: at once, or with `size` when there is room. None = it was claimed."""
        if size and self._room <= 0:
            self._large[candidate.config] = candidate, size
        elif size is not None:
            self._put(candidate)

    def _put_large(self) -> None:
        """Queue as many of the waiting large webhooks as there is room for."""
        room = self._room
        while room > 0 and self._large:
            candidate, size = self._large.pop(next(iter(self._large)))
            room -= size
            self._put(candidate)

    # --- sending ----------------------------------------------------------------------------

    def _carry(self, held: ClaimedWebhook, until: float) -> None:
        self._queues.begin(held.receiver, held.tenant, well=held.well)
        self._hold(held)
        task = self._sends[held.config] = self._loop.create_task(self._send_all(held, until))
        task.add_done_callback(functools.partial(self._done, held))

    def _hold(self, held: ClaimedWebhook) -> None:
        """Note the current send of a webhook, in place of the one before."""
        before = self._holds.get(held.config)
        self._bytes += held.large - (before.large if before else 0)
        self._holds[held.config] = held

    def _done(self, held: ClaimedWebhook, task: asyncio.Task[None]) -> None:
        if self._sends.get(held.config) is task:
            del self._sends[held.config]
            self._bytes -= self._holds.pop(held.config).large
            self._put_large()
        if self._queues.end(held.receiver):
            self._sweep_now()
        if self._queues:
            self._look.set()

    async def _send_all(self, held: ClaimedWebhook, until: float) -> None:
        """Send all due notifications of one webhook in order, each settled before the next.

        The lease lasts until `until`, by the loop's clock; each settlement extends it.
        """
        following: ClaimedWebhook | None = held
        begun = self._loop.time()
        try:
            while following is not None:
                held = following
                self._hold(held)
                result = await self._attempt(held, until)
                following, until = await self._settle(held, result, begun)
        except WebhookLeaseLost:
            logger.info(
                "webhook %s is another's now; what it answered is not recorded", held.config
            )
        except Overloaded as fault:  # nothing is lost: the lease ends, and it is sent again
            logger.warning(
                "what webhook %s answered is not recorded: %s", held.config, fault.__cause__
            )
        except Exception:
            logger.exception("webhook %s could not be settled", held.config)

    async def _attempt(self, held: ClaimedWebhook, until: float) -> AttemptResult:
        """Send once. Raises only WebhookLeaseLost, whatever the receiver or the config does."""
        started_at = timezone.now()
        with counters.under_way.track_inprogress():
            outcome = await self._outcome(held, until)
        failpoint("webhook.answered")
        if isinstance(outcome, Delivered):
            self._queues.set_well(held.receiver, well=outcome.seconds < SLOW_SECONDS)
        elif outcome.kind is FaultKind.HOST:
            _own.warning(Unanswered(outcome.kind, outcome.detail))
        else:
            self._queues.set_well(held.receiver, well=False)
        return self._result(held, outcome, started_at)

    async def _outcome(self, held: ClaimedWebhook, until: float) -> Outcome:
        """Return the outcome of an attempt; an error on this side counts as the host's own fault.

        Raises WebhookLeaseLost.
        """
        try:
            return await self._send_request(_request(held), until)
        except WebhookLeaseLost:
            raise
        except Unsealable:
            detail = "no key of this host opens the webhook's secrets"
        except Exception as fault:
            logger.exception("webhook %s could not be sent", held.config)
            detail = f"it could not be sent: {type(fault).__name__}"
        return AttemptRefused(FaultKind.HOST, None, 0.0, "", None, detail)

    async def _send_request(self, request: PreparedRequest, until: float) -> Outcome:
        failpoint("webhook.row_written")
        if self._loop.time() + float(conf.WEBHOOK_SECONDS) > until:
            raise WebhookLeaseLost  # this process was frozen: others may send it, or have
        if not failpoints.ON:
            return await self._sender.send(request)
        sending = asyncio.create_task(self._sender.send(request))
        await asyncio.wait({sending}, timeout=failpoints.STRIKING)
        failpoint("webhook.sent")
        return await sending

    def _result(
        self, held: ClaimedWebhook, outcome: Outcome, started_at: datetime.datetime
    ) -> AttemptResult:
        refused = outcome if isinstance(outcome, AttemptRefused) else None
        ended = str(refused.kind) if refused else counters.DELIVERED
        counters.attempts.labels(ended).observe(outcome.seconds)
        return AttemptResult(
            started_at=started_at,
            seconds=outcome.seconds,
            status=outcome.status,
            fault=refused.kind if refused else "",
            excerpt=outcome.excerpt,
            detail=refused.detail if refused else "",
            verdict=_verdict(held, refused) if refused else None,
            worker=self.worker,
        )

    async def _settle(
        self, held: ClaimedWebhook, result: AttemptResult, begun: float
    ) -> tuple[ClaimedWebhook | None, float]:
        """Store the result; while the database is away, for as long as the lease lasts.

        Raises WebhookLeaseLost, Overloaded.

        Returns the next send, and the end of its lease.
        """
        give_up_at = self._loop.time() + lease_seconds() - result.seconds
        while True:
            asked = self._loop.time()
            seconds = None if self._has_to_end(begun) else lease_seconds()
            settled = SettledAttempt(held, result, seconds, room=self._room + held.large)
            try:
                return await settle_batched(settled), asked + lease_seconds()
            except Overloaded:
                if self._loop.time() >= give_up_at:
                    raise
            await asyncio.sleep(AGAIN_SECONDS)

    def _has_to_end(self, begun: float) -> bool:
        """Return whether to let go of a webhook that is sent to since `begun`, though more may be due."""
        return self._draining or (bool(self._queues) and self._loop.time() - begun >= TURN_SECONDS)

    # --- ending -----------------------------------------------------------------------------

    def stop_claiming(self) -> None:
        """Claim no more webhooks. Thread-safe."""
        self._draining = True
        self.wake()

    async def drain(self, seconds: float) -> None:
        """Stop claiming, wait that long for requests under way, then release the other webhooks for other processes."""
        self.stop_claiming()
        end = self._loop.time() + seconds
        if self._main:  # webhooks being claimed have to be released as well
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
            await run_in_thread(claims.give_back, holds)


def _request(held: ClaimedWebhook) -> PreparedRequest:
    """Return the request of this attempt. Raises Unsealable."""
    target = unseal_secrets(held.target, held.secret)
    return prepare(
        held.notification,
        target,
        keys.ring(),
        tenant=held.tenant,
        issuer=keys.issuer(),
        now=time.time(),
    )


def _verdict(held: ClaimedWebhook, refused: AttemptRefused) -> Retry | GiveUp | Disable | Uncounted:
    scale, now = float(conf.WEBHOOK_TIME_SCALE), time.time()
    own = refused.kind is FaultKind.HOST
    if own and (later := decide_uncounted(held.made_at.timestamp(), now, scale=scale)):
        return later
    return decide(held.attempt, refused, now, random.random(), scale=scale)  # noqa: S311 - spreads load


def lease_seconds() -> float:
    """Return the duration of a lease: the time of an attempt, and as long again to store its result."""
    return 2 * float(conf.WEBHOOK_SECONDS) + LEASE_MARGIN


# --- the process's own ----------------------------------------------------------------------------

_deliverers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Deliverer] = (
    weakref.WeakKeyDictionary()
)


async def begin(*, alone: bool = False) -> asyncio.Event:
    """Start the deliverer, once per loop; the returned event is set when it is ready. `alone`: see Deliverer."""
    loop = asyncio.get_running_loop()
    found = _deliverers.get(loop)
    if found is None:
        found = _deliverers[loop] = Deliverer(alone=alone)
        found.start()
        process_lifetime.on_drain(found.stop_claiming)
        process_lifetime.on_stop(functools.partial(_drain, found))
    return found.looked


async def _drain(deliverer: Deliverer) -> None:
    await deliverer.drain(process_lifetime.drain_seconds())


def wake() -> None:
    """Make this process's deliverer sweep now, if there is one. Thread-safe."""
    for deliverer in list(_deliverers.values()):
        deliverer.wake()
