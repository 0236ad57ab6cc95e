"""The delivery of webhooks: due ones are claimed by a lease and sent, and each result is stored before the next step.

There is one `Deliverer` per process, on one event loop: a worker's own, or the web process's on the embedded host.
Hints name the tasks with new events; without any, the sweep finds them (law 1).
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import random
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from opentelemetry.trace import Span, SpanKind

from a2a_push import counters, keys
from a2a_push.envelope import PreparedRequest, prepare
from a2a_push.receiver_queue import ReceiverQueues
from a2a_push.retry_schedule import Disable, GiveUp, Retry, Uncounted, decide, decide_uncounted
from a2a_push.sender import AttemptRefused, Delivered, Outcome, Sender
from a2a_push.store import claims
from a2a_push.store.configs import unseal_secrets
from a2a_push.store.presence import PusherPresence, is_any_active
from a2a_push.store.records import AttemptResult, Candidate, ClaimedWebhook, WebhookLeaseLost
from a2a_push.store.results import SLOW_SECONDS, SettledAttempt, settle_batched
from a2a_tasks import failpoints, process, process_lifetime, pubsub
from a2a_tasks.conf import conf
from a2a_tasks.failpoints import failpoint
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.outbound import FaultKind, Unanswered
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.sealing import Unsealable
from a2a_tasks.store import clock
from a2a_tasks.store.db import run_in_thread, run_to_completion
from a2a_tasks.telemetry import tracing

__all__ = ["Deliverer", "begin", "wake"]

logger = logging.getLogger(__name__)
_blind = ThrottledLogger(logger, "due webhooks could not be read")
_own = ThrottledLogger(logger, "webhooks wait because of a fault of this host")

#: Seconds in which hints are collected before the table is read.
GATHER_SECONDS = 0.005
#: Maximum bytes of large bodies in a process at once; further ones wait in the table, and small ones pass them.
MAX_BYTES = 64 * 1024 * 1024
#: Maximum number of hints that wait to be handled; the oldest are dropped.
MAX_HINTED = 100_000
#: Seconds after which a webhook with more events gives its slot to a waiting one.
TURN_SECONDS = 10.0
#: Seconds beyond two attempts in the lease of a webhook: for the database to store the result.
LEASE_MARGIN = 5.0
#: Seconds between two attempts to store a result.
AGAIN_SECONDS = 0.3
#: Seconds beyond the drain for a claim that is under way.
TAKE_SECONDS = 0.5


@dataclass(slots=True, eq=False)
class _Send:
    """A send under way: the webhook with the delivery that is sent now, and the task that sends."""

    claimed: ClaimedWebhook
    task: asyncio.Task[None] = field(init=False)


class _LargeBodies:
    """The large bodies of a process: their bytes, and the webhooks that wait for room for theirs."""

    def __init__(self) -> None:
        #: The bytes that are in memory.
        self.bytes = 0
        #: The waiting webhooks, with the sizes of their bodies, the longest waiting first.
        self._waiting: dict[int, tuple[Candidate, int]] = {}

    def __contains__(self, config: int) -> bool:
        return config in self._waiting

    @property
    def room(self) -> int:
        """The bytes for which there is room."""
        return MAX_BYTES - self.bytes

    def wait(self, candidate: Candidate, size: int) -> None:
        """Let a webhook wait until there is room for its body."""
        self._waiting[candidate.config] = candidate, size

    def pop_fitting(self) -> Iterator[Candidate]:
        """Remove and yield as many of the waiting webhooks as there is room for."""
        room = self.room
        while room > 0 and self._waiting:
            candidate, size = self._waiting.pop(next(iter(self._waiting)))
            room -= size
            yield candidate


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
        self._hinted: deque[int] = deque(maxlen=MAX_HINTED)
        #: True if the loop was woken for them.
        self._woken = False
        self._queues = ReceiverQueues(int(conf.WEBHOOK_SLOTS) if slots is None else slots)
        #: The sends under way, by the keys of the webhooks.
        self._sends: dict[int, _Send] = {}
        self._large = _LargeBodies()
        #: The time of the next sweep, by the loop's clock, and the webhook it continues after.
        self._sweeps_at, self._swept = 0.0, 0
        self._alone = alone
        #: `PusherPresence.count` at the time when no webhook was active; until it changes, hints are ignored.
        self._idle_count: int | None = None
        #: Set once the table was read: this process is ready.
        self.ready = asyncio.Event()
        self._stack = contextlib.ExitStack()
        self._subscriber = pubsub.Subscriber(self._on_hint, everything=True)
        self._main: asyncio.Task[None] | None = None
        self._draining = False
        self.worker = process.name()

    @property
    def sending(self) -> int:
        """The number of webhooks that this process holds."""
        return len(self._sends)

    def start(self) -> None:
        """Begin to receive hints, read the table and send."""
        self._stack.enter_context(pubsub.listen(self._on_hint, pubsub.Committed))
        self._subscriber.start()
        self._main = asyncio.create_task(self._for_ever())

    # --- finding due webhooks ---------------------------------------------------------------

    def wake(self) -> None:
        """Sweep now, since any webhook may be due. Thread-safe."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._sweep_now)

    def _sweep_now(self) -> None:
        self._sweeps_at = 0.0
        self._look.set()

    def _on_hint(self, hint: pubsub.Hint) -> None:
        """Handle a hint, in any thread."""
        if isinstance(hint, pubsub.Committed) and self._idle_count != PusherPresence.count:
            self._hinted.append(hint.task)
            if not self._woken:  # once for many hints, so that writers are not slowed down
                self._woken = True
                with contextlib.suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._look.set)

    async def _for_ever(self) -> None:
        while not self._draining:
            try:
                await self._round()
                self.ready.set()
            except Overloaded as fault:  # the database is away: try again
                _blind.warning(fault.__cause__ or fault)
                self._sweeps_at = self._loop.time() + float(conf.POLL_SECONDS)
            except Exception:
                logger.exception("due webhooks could not be claimed")
                self._sweeps_at = self._loop.time() + float(conf.POLL_SECONDS)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(self._sweeps_at):
                    await self._look.wait()
                    await asyncio.sleep(GATHER_SECONDS)

    async def _round(self) -> None:
        self._look.clear()
        self._woken = False
        for first in range(0, count := len(self._hinted), claims.SLICE):
            some = range(min(count - first, claims.SLICE))
            tasks = {self._hinted.popleft() for _ in some}
            self._note(await run_in_thread(claims.due_of, tasks))
        if self._loop.time() >= self._sweeps_at:
            await self._sweep()
        await self._take()

    async def _sweep(self) -> None:
        """Sweep one slice of all active webhooks, then pause as long as it took, or until the next sweep."""
        begun, count = self._loop.time(), PusherPresence.count
        found, self._swept = await run_in_thread(claims.sweep, self._swept)
        self._note(found)
        now = self._loop.time()
        self._sweeps_at = now + (now - begun if self._swept else float(conf.POLL_SECONDS))
        if not self._swept:
            self._queues.forget_idle()
            idle = self._alone and not await run_in_thread(is_any_active)
            self._idle_count = count if idle else None

    def _note(self, candidates: Iterable[Candidate]) -> None:
        for candidate in candidates:
            if candidate.wait > 0:
                self._loop.call_later(candidate.wait, self._put, candidate)
                self._loop.call_later(candidate.wait, self._look.set)
            else:
                self._put(candidate)

    def _put(self, candidate: Candidate) -> None:
        if candidate.config not in self._sends and candidate.config not in self._large:
            self._queues.put(candidate)

    # --- claiming ---------------------------------------------------------------------------

    async def _take(self) -> None:
        while not self._draining and (chosen := self._queues.choose()):
            until = self._loop.time() + lease_seconds()
            # Not cancellable: webhooks claimed without a result would wait for the end of their lease.
            taken = await run_to_completion(
                claims.take,
                [candidate.config for candidate in chosen],
                worker=self.worker,
                lease_seconds=lease_seconds(),
                room=self._large.room,
            )
            if taken.claimed:
                failpoint("webhook.claimed")
            for claimed in taken.claimed:
                self._start_send(claimed, until)
            for candidate in chosen:
                size = taken.left.get(candidate.config)
                if size and self._large.room <= 0:
                    self._large.wait(candidate, size)
                elif size is not None:
                    self._put(candidate)

    # --- sending ----------------------------------------------------------------------------

    def _start_send(self, claimed: ClaimedWebhook, until: float) -> None:
        """Start to send for a webhook; a send whose lease was lost may still be under way for it."""
        self._queues.begin(claimed.receiver, claimed.tenant, well=claimed.well)
        if (lost := self._sends.get(claimed.config)) is not None:
            self._large.bytes -= lost.claimed.large
        self._large.bytes += claimed.large
        send = self._sends[claimed.config] = _Send(claimed)
        send.task = self._loop.create_task(self._send_all(send, until))
        send.task.add_done_callback(functools.partial(self._end_send, send, claimed.receiver))

    def _end_send(self, send: _Send, receiver: int, _: asyncio.Task[None]) -> None:
        if self._sends.get(send.claimed.config) is send:
            del self._sends[send.claimed.config]
            self._large.bytes -= send.claimed.large
            for candidate in self._large.pop_fitting():
                self._put(candidate)
        if self._queues.end(receiver):
            self._sweep_now()
        if self._queues:
            self._look.set()

    async def _send_all(self, send: _Send, until: float) -> None:
        """Send all due notifications of one webhook in order, each settled before the next.

        The lease lasts until `until`, by the loop's clock; each settlement extends it.
        """
        config, begun = send.claimed.config, self._loop.time()
        try:
            while True:
                result = await self._attempt(send.claimed, until)
                following, until = await self._settle(send.claimed, result, begun)
                if following is None:
                    return
                if self._sends.get(config) is send:
                    self._large.bytes += following.large - send.claimed.large
                send.claimed = following
        except WebhookLeaseLost:
            logger.info(
                "webhook %s belongs to another process now; its answer is not recorded", config
            )
        except Overloaded as fault:  # nothing is lost: the lease ends, and it is sent again
            logger.warning("the answer of webhook %s is not recorded: %s", config, fault.__cause__)
        except Exception:
            logger.exception("webhook %s could not be settled", config)

    async def _attempt(self, claimed: ClaimedWebhook, until: float) -> AttemptResult:
        """Send once. Raises only WebhookLeaseLost: failures of the receiver or the config are results."""
        started_at = clock.moment(clock.estimate())
        with counters.under_way.track_inprogress():
            outcome = await self._outcome(claimed, until)
        failpoint("webhook.answered")
        if isinstance(outcome, Delivered):
            self._queues.set_well(claimed.receiver, well=outcome.seconds < SLOW_SECONDS)
        elif outcome.kind is FaultKind.HOST:
            _own.warning(Unanswered(outcome.kind, outcome.detail))
        else:
            self._queues.set_well(claimed.receiver, well=False)
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
            verdict=_verdict(claimed, refused) if refused else None,
            worker=self.worker,
        )

    async def _outcome(self, claimed: ClaimedWebhook, until: float) -> Outcome:
        """Return the outcome of an attempt; an error on this side counts as the host's own fault.

        Raises WebhookLeaseLost.
        """
        try:
            with _begin_span(claimed) as span:
                outcome = await self._send_request(_request(claimed), until)
                tracing.note_status(span, outcome.status)
                if isinstance(outcome, AttemptRefused):
                    tracing.fail(span, str(outcome.kind))
            return outcome
        except WebhookLeaseLost:
            raise
        except Unsealable:
            detail = "no key of this host opens the webhook's secrets"
        except Exception as fault:
            logger.exception("webhook %s could not be sent", claimed.config)
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

    async def _settle(
        self, claimed: ClaimedWebhook, result: AttemptResult, begun: float
    ) -> tuple[ClaimedWebhook | None, float]:
        """Store the result; return the next delivery, and the end of its lease.

        While the database is away, it tries again for as long as the lease lasts. Raises WebhookLeaseLost, Overloaded.
        """
        give_up_at = self._loop.time() + lease_seconds() - result.seconds
        while True:
            begins = self._loop.time()
            others_wait = bool(self._queues) and begins - begun >= TURN_SECONDS
            seconds = None if self._draining or others_wait else lease_seconds()
            room = self._large.room + claimed.large
            settled = SettledAttempt(claimed, result, seconds, room=room)
            try:
                return await settle_batched(settled), begins + lease_seconds()
            except Overloaded:
                if self._loop.time() >= give_up_at:
                    raise
            await asyncio.sleep(AGAIN_SECONDS)

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
        if tasks := [send.task for send in self._sends.values()]:
            await asyncio.wait(tasks, timeout=max(0.0, end - self._loop.time()))
        left = list(self._sends.values())
        claimed = [send.claimed for send in left]
        for send in left:
            send.task.cancel()
        try:
            if left:
                await asyncio.wait([send.task for send in left], timeout=TAKE_SECONDS)
                await run_in_thread(claims.give_back, claimed)
        finally:
            self._stack.close()
            await self._subscriber.close()
            await self._sender.close()


def _begin_span(claimed: ClaimedWebhook) -> AbstractContextManager[Span | None]:
    """Return the span of an attempt, in the trace of the message that the task answers."""
    about: dict[str, str | int] = {
        "a2a.task.id": claimed.target.task_id,
        "a2a_host.delivery_attempt": claimed.attempt,
    }
    if claimed.tenant:
        about["a2a.tenant"] = claimed.tenant
    parent, url = claimed.trace.as_parent(), claimed.target.url
    return tracing.call_span("POST webhook", "POST", url, SpanKind.PRODUCER, about, parent=parent)


def _request(claimed: ClaimedWebhook) -> PreparedRequest:
    """Return the request of this attempt. Raises Unsealable."""
    target = unseal_secrets(claimed.target, claimed.secret)
    return prepare(
        claimed.notification,
        target,
        keys.ring(),
        tenant=claimed.tenant,
        issuer=keys.issuer(),
        now=clock.estimate(),
    )


def _verdict(
    claimed: ClaimedWebhook, refused: AttemptRefused
) -> Retry | GiveUp | Disable | Uncounted:
    scale, now = float(conf.WEBHOOK_TIME_SCALE), clock.estimate()
    own = refused.kind is FaultKind.HOST
    if own and (later := decide_uncounted(claimed.made_at.timestamp(), now, scale=scale)):
        return later
    return decide(claimed.attempt, refused, now, random.random(), scale=scale)  # noqa: S311 - spreads load


def lease_seconds() -> float:
    """Return the duration of a lease: the time of an attempt, and as long again to store its result."""
    return 2 * float(conf.WEBHOOK_SECONDS) + LEASE_MARGIN


# --- the deliverers of the process ----------------------------------------------------------------

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
    return found.ready


async def _drain(deliverer: Deliverer) -> None:
    await deliverer.drain(process_lifetime.drain_seconds())


def wake() -> None:
    """Make this process's deliverer sweep now, if there is one. Thread-safe."""
    for deliverer in list(_deliverers.values()):
        deliverer.wake()
