"""Storage of attempts, many in one transaction: attempt, delivery, receiver, cursor, and the next delivery.

A result is not written if its token no longer holds the webhook, or if its delivery is settled already.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus

from django.db import transaction

from a2a_push import breaker
from a2a_push.breaker import Phase
from a2a_push.models import Attempt, Delivery, DeliveryStatus, PushConfig, Receiver, Trigger
from a2a_push.retry_schedule import Disable, Retry, Uncounted
from a2a_push.store import claims
from a2a_push.store.configs import to_value
from a2a_push.store.receivers import policy, read, to_columns
from a2a_push.store.records import AttemptResult, ClaimedWebhook, WebhookLeaseLost
from a2a_tasks.audit import Action
from a2a_tasks.caller import OwnerScope
from a2a_tasks.failpoints import failpoint
from a2a_tasks.outbound import FaultKind
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store import audit, clock
from a2a_tasks.store.backend.rows import update_each
from a2a_tasks.store.backend.sessions import is_cut_off
from a2a_tasks.store.batched_call import BatchedCall, one_by_one
from a2a_tasks.store.db import is_away, run_to_completion

__all__ = ["SLOW_SECONDS", "SettledAttempt", "settle", "settle_batched"]

logger = logging.getLogger(__name__)
#: A receiver that takes longer gets one notification at a time.
SLOW_SECONDS = 1.0
#: The actor in the audit log when a receiver or a webhook is disabled automatically.
BY = "system:webhooks"


@dataclass(frozen=True, slots=True)
class SettledAttempt:
    """An attempt to store."""

    claimed: ClaimedWebhook
    result: AttemptResult
    #: Seconds of the new lease, if there is more to send; None = the webhook is released.
    lease_seconds: float | None
    #: Bytes of further large bodies that its process can hold.
    room: int = claims.BATCH_BYTES


@dataclass(slots=True)
class _Item:
    """An attempt with the rows that it changes."""

    attempt: SettledAttempt
    config: PushConfig
    delivery: Delivery


def settle(attempts: list[SettledAttempt]) -> list[ClaimedWebhook | Exception | None]:
    """Store the results of these attempts. Returns for each the next delivery of its holder, or WebhookLeaseLost.

    None = the webhook was released. A result that cannot be stored does not affect the others.
    """
    try:
        results = _settle_group(attempts)
    except Exception as fault:
        if is_away(fault) and not is_cut_off(fault):
            raise
        if len(attempts) > 1:
            return one_by_one(settle, attempts)
        if attempts[0].lease_seconds is None:
            # It was rolled back; a transaction that was too slow may be faster when its holder repeats it.
            return [Overloaded.away(undone=True) if is_away(fault) else fault]
        logger.exception(
            "webhook %s is released: its next delivery could not be built",
            attempts[0].claimed.config,
        )
        # The result is stored even if the next delivery cannot be built; otherwise this one would be sent for ever.
        return settle([replace(attempts[0], lease_seconds=None)])
    failpoint("webhook.settled")
    return results


#: `await settle_batched(attempt)`: settle in one flush with other attempts.
settle_batched = BatchedCall(settle, run=run_to_completion)


@transaction.atomic
def _settle_group(attempts: list[SettledAttempt]) -> list[ClaimedWebhook | Exception | None]:
    held = _lock_leased(attempts)
    items = list(held.values())
    _judge(items)
    for item in items:
        _settle(item)
    made = [item for item in items if not isinstance(item.attempt.result.verdict, Uncounted)]
    Attempt.objects.bulk_create([_attempt(item) for item in made])
    columns = ["attempts", "trigger", "receiver", "next_at", "reason", "status", "settled_at"]
    update_each([item.delivery for item in items], columns)
    if any(item.config.disabled_reason or item.config.receiver.disabled_at for item in items):
        failpoint("webhook.disabling")
    going = _find_next(items)
    results: list[ClaimedWebhook | Exception | None] = []
    for each in attempts:
        config = each.claimed.config
        # Another attempt of the batch may be of a former holder of the webhook.
        mine = config in held and held[config].attempt.claimed is each.claimed
        results.append(going.get(config) if mine else WebhookLeaseLost())
    return results


def _lock_leased(attempts: Sequence[SettledAttempt]) -> dict[int, _Item]:
    """Return the attempts whose holders still hold their webhooks, by the keys of these, which are locked."""
    configs = PushConfig.objects.filter(pk__in={each.claimed.config for each in attempts})
    configs = configs.select_related("receiver", "task__context").defer(*claims.UNREAD)
    configs = configs.order_by("pk")
    locked = {config.pk: config for config in configs.select_for_update(of=("self",), no_key=True)}
    deliveries = Delivery.objects.defer("body").in_bulk(
        [each.claimed.delivery for each in attempts]
    )
    held: dict[int, _Item] = {}
    for each in attempts:
        claimed = each.claimed
        config, delivery = locked.get(claimed.config), deliveries.get(claimed.delivery)
        if config is None or delivery is None or config.token != claimed.token:
            continue
        if delivery.status == DeliveryStatus.PENDING and delivery.attempts + 1 == claimed.attempt:
            held[config.pk] = _Item(_uncount_if_replaced(each, config), config, delivery)
    return held


def _uncount_if_replaced(attempt: SettledAttempt, config: PushConfig) -> SettledAttempt:
    """Do not count a refusal if the webhook was replaced meanwhile: the notification is sent again to the new one."""
    claimed, result = attempt.claimed, attempt.result
    registered = to_value(config, claimed.target.task_id), config.secret
    if result.verdict is None or registered == (claimed.target, claimed.secret):
        return attempt
    detail = f"the webhook was replaced meanwhile; before: {result.detail}"
    now = Uncounted(clock.now().timestamp())
    return replace(attempt, result=replace(result, verdict=now, detail=detail))


# --- the receivers ------------------------------------------------------------------------------


def _judge(items: Sequence[_Item]) -> None:
    """Record the results in the receivers' breakers, and store their new states."""
    rows = Receiver.objects.filter(pk__in={item.config.receiver_id for item in items})
    locked = rows.order_by("pk").select_for_update(no_key=True)
    receivers = {row.pk: row for row in locked}
    for item in items:
        _record_result(receivers[item.config.receiver_id], item.attempt)
    columns = ["breaker", "probe_at", "paused_until", "disabled_at", "disabled_reason", "well"]
    columns += ["delivered", "failed", "last_success_at", "last_failure_at", "last_seconds"]
    update_each(list(receivers.values()), columns)
    for item in items:
        item.config.receiver = receivers[item.config.receiver_id]


def _record_result(receiver: Receiver, attempt: SettledAttempt) -> None:
    result, now = attempt.result, clock.now()
    if isinstance(result.verdict, Uncounted) or result.fault == FaultKind.HOST:
        return
    receiver.last_seconds = result.seconds
    # A receiver that answers 410 works itself.
    answered = result.verdict is None or result.status == HTTPStatus.GONE
    receiver.well = answered and result.seconds < SLOW_SECONDS
    arguments = read(receiver), now.timestamp(), attempt.claimed.permit
    if answered:
        state = breaker.record_success(*arguments, policy())
    else:
        state = breaker.record_failure(*arguments, result.detail, policy())
    if result.verdict is None:
        receiver.delivered, receiver.last_success_at = receiver.delivered + 1, now
    else:
        receiver.failed, receiver.last_failure_at = receiver.failed + 1, now
    if isinstance(result.verdict, Retry) and result.verdict.pause_until is not None:
        until = clock.moment(result.verdict.pause_until)
        receiver.paused_until = max(until, receiver.paused_until or until)
    if state.phase is Phase.DISABLED and receiver.disabled_at is None:
        receiver.disabled_at, receiver.disabled_reason = now, state.reason
        audit.note(Action.RECEIVER_DISABLE, str(receiver.pk), tenant=receiver.tenant, actor=BY)
    for name, value in to_columns(state).items():
        setattr(receiver, name, value)


# --- the deliveries -----------------------------------------------------------------------------


def _settle(item: _Item) -> None:
    """Store the result of one attempt in the delivery and the webhook."""
    delivery, verdict = item.delivery, item.attempt.result.verdict
    if isinstance(verdict, Uncounted):
        delivery.next_at, delivery.reason = clock.moment(verdict.at), item.attempt.result.detail
        return
    delivery.attempts += 1
    delivery.trigger = Trigger.SCHEDULE
    delivery.receiver_id = item.config.receiver_id
    delivery.next_at, delivery.reason = None, "" if verdict is None else item.attempt.result.detail
    if isinstance(verdict, Retry):
        delivery.next_at = clock.moment(verdict.at)
        return
    if verdict is not None:
        delivery.reason = f"{verdict.reason}; last: {delivery.reason}"
    delivery.status = DeliveryStatus.DELIVERED if verdict is None else DeliveryStatus.DEAD
    delivery.settled_at = clock.now()
    if delivery.task_id == item.config.task_id:  # not of a predecessor of the task
        item.config.cursor = max(item.config.cursor, delivery.through)
    if isinstance(verdict, Disable):
        item.config.disabled_reason = verdict.reason
        task = item.config.task
        scope = OwnerScope(task.tenant, task.owner, task.agent)
        detail = {"config": item.config.public_id}
        audit.note(Action.WEBHOOK_DISABLE, task.public_id, scope=scope, actor=BY, detail=detail)


def _attempt(item: _Item) -> Attempt:
    claimed, result = item.attempt.claimed, item.attempt.result
    return Attempt(
        delivery=item.delivery,
        number=claimed.attempt,
        trigger=claimed.trigger,
        started_at=result.started_at,
        seconds=result.seconds,
        status=result.status,
        fault=result.fault,
        excerpt=result.excerpt,
        detail=result.detail,
        worker=result.worker,
    )


# --- the next deliveries ------------------------------------------------------------------------


def _find_next(items: Sequence[_Item]) -> dict[int, ClaimedWebhook]:
    """Return the next deliveries of the webhooks that stay held, by key, and release the other webhooks."""
    claims.release([item.config for item in items if item.attempt.lease_seconds is None])
    staying = [item for item in items if item.attempt.lease_seconds is not None]
    if not staying:
        return {}
    attempt = staying[0].attempt
    configs = [item.config for item in staying]
    worker, seconds = attempt.result.worker, attempt.lease_seconds or 0.0
    room = min(item.attempt.room for item in staying)
    return {
        claimed.config: claimed for claimed in claims.hold(configs, worker, seconds, room).claimed
    }
