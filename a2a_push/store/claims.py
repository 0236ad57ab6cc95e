"""Claims of due webhooks: found without a lock, then leased, with their next deliveries. All times are the database's."""

from __future__ import annotations

import datetime
import logging
import secrets
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from a2a_push import breaker
from a2a_push.envelope import Notification
from a2a_push.models import Delivery, PushConfig, Receiver
from a2a_push.store import bodies
from a2a_push.store.configs import to_value
from a2a_push.store.cursor import BATCH_BYTES, next_deliveries
from a2a_push.store.receivers import policy, read, to_columns
from a2a_push.store.records import Candidate, ClaimedWebhook
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.store import clock
from a2a_tasks.store.backend.rows import filter_keys, update_each
from a2a_tasks.store.backend.sessions import is_cut_off
from a2a_tasks.store.db import is_away, run_here
from a2a_tasks.store.runs import read_requests
from a2a_tasks.telemetry import tracing
from a2a_tasks.telemetry.trace_context import trace_in

__all__ = [
    "BATCH_BYTES",
    "REACHABLE",
    "SLICE",
    "UNREAD",
    "ClaimedBatch",
    "due",
    "due_of",
    "give_back",
    "hold",
    "release",
    "sweep",
    "take",
]

logger = logging.getLogger(__name__)
#: Number of webhooks in one read of the sweep.
SLICE = 2000
#: Seconds in advance for which due webhooks are read.
SOON = 1.0
#: Seconds until a webhook whose next delivery could not be built is tried again.
REST = 60.0
#: Long columns of a webhook's task that are not needed for sending.
UNREAD = ("task__status_message", "task__metadata", "task__memory")
#: Columns of a webhook that are saved after a search for its next delivery.
STANDING = ["cursor", "looked", "active", "due_at", "disabled_reason"]

_WITH_WEBHOOKS = """
select distinct task_id from a2a_push_pushconfig where task_id = any(%s) and active
"""
_DISABLED = ~Q(disabled_reason="") | Q(receiver__disabled_at__isnull=False)
#: The condition of webhooks, and of deliveries, whose receiver takes requests now, unless it is disabled.
REACHABLE = (Q(receiver__probe_at=None) | Q(receiver__probe_at__lte=Now())) & (
    Q(receiver__paused_until=None) | Q(receiver__paused_until__lte=Now())
)
_MORE = Q(due_at=None, task__last_event__gt=F("looked")) & (
    Q(task__is_task=True) | Q(task__state__in=sorted(TERMINAL))
)
_FREE = Q(token="") | Q(lease_until__lt=Now())


def due(seconds: float = 0.0) -> Q:
    """Return the condition of unleased webhooks with work now, or within `seconds`."""
    soon = Q(due_at__lte=Now() + datetime.timedelta(seconds=seconds) if seconds else Now())
    return Q(active=True) & _FREE & (soon | _MORE) & (_DISABLED | REACHABLE)


def due_of(tasks: Collection[int]) -> list[Candidate]:
    """Return the webhooks of these tasks that are due now or soon.

    Hints name every task with new events, and few tasks have webhooks: a prepared statement first drops the others.
    """
    named = filter_keys(_WITH_WEBHOOKS, list(tasks))
    return _candidates(PushConfig.objects.filter(task__in=named)) if named else []


def sweep(after: int) -> tuple[list[Candidate], int]:
    """Return the due ones of the next SLICE active webhooks after a key, and the key to continue after; 0 = the end."""
    active = PushConfig.objects.filter(active=True, pk__gt=after).order_by("pk")
    keys = list(active.values_list("pk", flat=True)[:SLICE])
    if not keys:
        return [], 0
    found = PushConfig.objects.filter(pk__gt=after, pk__lte=keys[-1])
    return _candidates(found), keys[-1] if len(keys) == SLICE else 0


def _candidates(among: QuerySet[PushConfig]) -> list[Candidate]:
    found = among.filter(due(SOON)).order_by("pk")
    now = clock.now()
    return [
        Candidate(key, receiver, well, (at - now).total_seconds() if at else 0.0, tenant)
        for key, receiver, well, at, tenant in found.values_list(
            "pk", "receiver", "receiver__well", "due_at", "receiver__tenant"
        )
    ]


class ClaimedBatch(NamedTuple):
    """The webhooks that a transaction has claimed, and those that it has left for another one."""

    claimed: list[ClaimedWebhook]
    #: Keys of webhooks that were not claimed for lack of room, with the bytes of their bodies; 0 = not built yet.
    left: dict[int, int]


def take(
    keys: Sequence[int], *, worker: str, lease_seconds: float, room: int = BATCH_BYTES
) -> ClaimedBatch:
    """Lease those of these webhooks that are still due, with one delivery each, which is stored before it is sent.

    Large bodies are included up to `room` bytes. For webhooks without a delivery, the time of the next search is stored.
    A webhook whose delivery cannot be built does not affect the others; it is tried again after REST seconds.
    """
    try:
        return _take(keys, worker, lease_seconds, room)
    except Exception as fault:
        if is_away(fault) and not is_cut_off(fault):
            raise
        if len(keys) > 1:
            return _one_by_one(keys, worker, lease_seconds, room)
        logger.exception("the next delivery of webhook %s could not be built", keys[0])
        later = Now() + datetime.timedelta(seconds=REST)
        PushConfig.objects.filter(pk__in=keys).update(due_at=later)
        return ClaimedBatch([], {})


def _one_by_one(keys: Sequence[int], worker: str, lease_seconds: float, room: int) -> ClaimedBatch:
    """Claim each in a transaction of its own; if the database goes away, return those that were claimed until then."""
    taken = ClaimedBatch([], {})
    for key in keys:
        try:
            more = run_here(take, [key], worker=worker, lease_seconds=lease_seconds, room=room)
        except Overloaded:
            break
        room -= sum(claimed.large for claimed in more.claimed)
        taken = ClaimedBatch(taken.claimed + more.claimed, taken.left | more.left)
    return taken


@transaction.atomic
def _take(keys: Collection[int], worker: str, lease_seconds: float, room: int) -> ClaimedBatch:
    found = PushConfig.objects.filter(due(), pk__in=list(keys)).order_by("pk")
    found = found.select_related("receiver", "task__context").defer(*UNREAD)
    configs = list(found.select_for_update(of=("self",), skip_locked=True, no_key=True))
    return hold(configs, worker, lease_seconds, room)


def hold(
    configs: Sequence[PushConfig], worker: str, lease_seconds: float, room: int
) -> ClaimedBatch:
    """Lease those of these locked webhooks that have a delivery to send now, and release the others."""
    deliveries, unbuilt = next_deliveries(configs)
    left = dict.fromkeys(unbuilt, 0) | _beyond(deliveries, min(room, BATCH_BYTES))
    for config in configs:
        if config.pk in left:
            config.due_at = clock.now()
            deliveries.pop(config.pk, None)
    permitted = _permits(config.receiver for config in configs if config.pk in deliveries)
    token, taken = secrets.token_urlsafe(18), []
    texts = bodies.read(deliveries.values())
    tasks = [config.task_id for config in configs if config.pk in deliveries]
    newest_requests = read_requests(tasks) if tracing.is_on() else {}
    for config in configs:
        delivery = deliveries.get(config.pk)
        if delivery is None:
            continue
        permit = permitted.get(config.receiver_id)
        if permit is None:  # not now; it becomes due when the receiver's breaker permits it
            config.due_at = clock.now()
            continue
        if permit != breaker.ORDINARY:
            del permitted[config.receiver_id]  # one probe at a time
        config.due_at = None
        body = delivery.body.encode() or texts[bodies.key_of(delivery)]
        claimed = ClaimedWebhook(
            config=config.pk,
            token=token,
            receiver=config.receiver_id,
            permit=permit,
            well=config.receiver.well,
            delivery=delivery.pk,
            notification=Notification(delivery.webhook_id, delivery.content_type, body),
            made_at=delivery.created_at,
            attempt=delivery.attempts + 1,
            trigger=delivery.trigger,
            tenant=config.task.tenant,
            target=to_value(config, config.task.public_id),
            secret=config.secret,
            trace=trace_in(newest_requests.get(config.task_id, "")),
        )
        taken.append(claimed)
    update_each(configs, STANDING)
    leased = {claimed.config for claimed in taken}
    until = Now() + datetime.timedelta(seconds=lease_seconds)
    # Due again when the lease ends: the log has no new events for replayed deliveries.
    PushConfig.objects.filter(pk__in=leased).update(
        token=token, lease_until=until, worker=worker, due_at=Now()
    )
    _free({config.pk for config in configs} - leased)
    return ClaimedBatch(taken, left)


def _beyond(deliveries: dict[int, Delivery], room: int) -> dict[int, int]:
    """Return the webhooks whose large bodies do not fit into `room`, with their sizes; if it is positive, one always fits."""
    sizes, left = bodies.sizes(deliveries.values()), {}
    for config, delivery in deliveries.items():
        size = sizes.get(bodies.key_of(delivery), 0)
        if size and room <= 0:
            left[config] = size
        room -= size
    return left


def release(configs: Sequence[PushConfig]) -> None:
    """Release these locked webhooks to other deliverers at once."""
    for config in configs:
        config.due_at = clock.now()
    update_each(configs, STANDING)
    _free({config.pk for config in configs})


def _free(keys: Collection[int]) -> None:
    if keys:
        PushConfig.objects.filter(pk__in=keys).update(token="", lease_until=None)


def _permits(receivers: Iterable[Receiver]) -> dict[int, int]:
    """Return the permits of the breakers of these receivers, by key. A closed breaker gives the ordinary permit.

    A receiver that another transaction has locked gets no permit now, so that the others do not wait for it.
    """
    met = {receiver.pk: receiver for receiver in receivers}
    found = {
        receiver.pk: breaker.ORDINARY
        for receiver in met.values()
        if not (receiver.probe_at or receiver.paused_until or receiver.disabled_at)
    }
    doubtful = Receiver.objects.filter(pk__in=met.keys() - found.keys()).order_by("pk")
    now = clock.now()
    for receiver in doubtful.select_for_update(no_key=True, skip_locked=True):
        if receiver.paused_until is not None and receiver.paused_until > now:
            continue
        state, permit = breaker.ask(read(receiver), now.timestamp(), policy())
        columns = to_columns(state) | {"paused_until": None}
        Receiver.objects.filter(pk=receiver.pk).update(**columns)
        if permit is not None:
            found[receiver.pk] = permit
    return found


def give_back(holds: Collection[ClaimedWebhook]) -> None:
    """Release webhooks without a result because this process stops: another process sends at once."""
    for token in {claimed.token for claimed in holds}:
        keys = [claimed.config for claimed in holds if claimed.token == token]
        mine = PushConfig.objects.filter(pk__in=keys, token=token)
        mine.update(token="", lease_until=None, due_at=Now())
