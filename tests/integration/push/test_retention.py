"""Retention: what webhooks are still to be told of stays, what is kept of them goes in time."""

from __future__ import annotations

import datetime

import pytest
from django.db.models import F
from pytest_django import Settings

from a2a_push.models import Attempt, Delivery, DeliveryStatus, PushConfig, Receiver
from a2a_push.store import claims, retention
from a2a_tasks.models import Task
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.purge import Removed, RetentionLimits, purge
from tests.support.push.configs import registered
from tests.support.store.world import Pen, held

pytestmark = pytest.mark.django_db
MONTH = datetime.timedelta(days=31)


def ended() -> Pen:
    """A task that ended a month ago, of which a webhook has not been told."""
    pen = Pen(held())
    registered()
    pen.state(TaskState.WORKING)
    pen.end()
    Task.objects.update(status_at=F("status_at") - MONTH, created_at=F("created_at") - MONTH)
    return pen


def purged() -> Removed:
    """What goes of tasks that ended a day ago."""
    return sum(purge(RetentionLimits.of(1, 0)), Removed())


def settle(status: str = DeliveryStatus.DELIVERED) -> None:
    """Have all that waits be over, a month ago."""
    now = claims.take(
        [row.pk for row in PushConfig.objects.all()], worker="w", lease_seconds=9
    ).claimed
    assert len(now) == 1
    delivery = Delivery.objects.get()
    Attempt.objects.create(delivery=delivery, number=1, started_at=delivery.created_at, seconds=1)
    Delivery.objects.update(status=status, settled_at=F("created_at") - MONTH)
    PushConfig.objects.update(active=False, token="", lease_until=None)
    Receiver.objects.update(created_at=F("created_at") - MONTH)


def test_a_task_stays_until_its_webhooks_are_told() -> None:
    pen = ended()
    assert retention.find_undelivered([pen.run.task]) == {pen.run.task}
    assert purged() == Removed()
    settle()
    assert retention.find_undelivered([pen.run.task]) == set()
    assert purged().tasks == 1
    assert not Delivery.objects.exists()
    assert not PushConfig.objects.exists()


def test_the_log_stays_as_long() -> None:
    pen = ended()
    assert sum(purge(RetentionLimits.of(0, 1)), Removed()) == Removed()
    assert pen.run.task in retention.find_undelivered([pen.run.task])


def test_what_is_pending_keeps_the_task_of_a_webhook_that_moved_on() -> None:
    pen = ended()
    claims.take([PushConfig.objects.get().pk], worker="w", lease_seconds=9)
    PushConfig.objects.update(active=False)
    assert retention.find_undelivered([pen.run.task]) == {pen.run.task}


def test_settled_deliveries_go_in_time_with_their_attempts() -> None:
    ended()
    settle()
    assert retention.forget(100) == 2
    assert not Attempt.objects.exists()
    assert retention.forget(100) == 0, "the receiver still has a webhook"


def test_a_receiver_goes_with_its_last_webhook_unless_it_is_disabled() -> None:
    ended()
    settle()
    retention.forget(100)
    PushConfig.objects.all().delete()
    Receiver.objects.update(disabled_at=F("created_at"))
    assert retention.forget(100) == 0
    Receiver.objects.update(disabled_at=None)
    assert retention.forget(100) == 1


def test_nothing_goes_where_it_is_kept_for_ever(settings: Settings) -> None:
    ended()
    settle()
    settings.A2A_WEBHOOK_RETENTION_DAYS = 0
    assert retention.forget(100) == 0
    settings.A2A_WEBHOOK_RETENTION_DAYS = 1e300
    assert retention.forget(100) == 0
