"""What the webhooks of a task wait for, among the reasons why the task stands as it does."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from a2a_console.diagnosis.reasons import Needs, diagnose
from a2a_console.diagnosis.webhooks import LOOKED, explain_deliveries
from a2a_push.models import DeliveryStatus, PushConfig
from a2a_push.store import switches
from a2a_tasks.models import Task
from tests.support.console.admin.rows import make_task
from tests.support.push.rows import make_config, make_delivery

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]


def free(task: Task) -> PushConfig:
    return make_config(task, token="", lease_until=None, worker="")


class TestToldLater:
    def test_says_what_a_webhook_waits_for_and_until_when(self) -> None:
        soon = timezone.now() + timedelta(minutes=5)
        config = free(make_task())
        waiting = make_delivery(config, next_at=soon, attempts=2, reason="answered 503")
        (reason,) = explain_deliveries(config.task_id)
        assert reason.sentence.startswith(
            f"The webhook c-1 is to be told of event {waiting.number}. The next attempt, 3 of 10, comes at"
        )
        assert (reason.at, reason.needs) == (soon, Needs.NOBODY)
        assert reason.link is not None
        assert (reason.link.model, reason.link.key) == ("a2a_push.delivery", waiting.pk)

    def test_calls_for_the_operator_where_somebody_has_disabled_the_receiver(self) -> None:
        config = free(make_task())
        make_delivery(config)
        switches.disable(config.receiver_id, "too loud")
        (reason,) = explain_deliveries(config.task_id)
        assert "The receiver is disabled: too loud." in reason.sentence
        assert (reason.at, reason.needs) == (None, Needs.OPERATOR)

    def test_says_nothing_of_what_is_well_or_settled_or_of_another_task(self) -> None:
        config, other = free(make_task()), free(make_task("other"))
        make_delivery(config)
        make_delivery(config, DeliveryStatus.DEAD)
        make_delivery(other, next_at=timezone.now() + timedelta(minutes=5))
        assert list(explain_deliveries(config.task_id)) == []

    def test_is_bounded(self) -> None:
        soon = timezone.now() + timedelta(minutes=5)
        task = make_task()
        for number in range(LOOKED + 5):
            config = make_config(
                task, f"c-{number}", token="", lease_until=None, worker="", active=True
            )
            make_delivery(config, next_at=soon)
        assert len(list(explain_deliveries(task.pk))) == LOOKED

    def test_is_among_the_reasons_of_the_task(self) -> None:
        config = free(make_task())
        make_delivery(config, next_at=timezone.now() + timedelta(minutes=5))
        assert [reason.kind for reason in diagnose(config.task_id).also] == ["webhook"]
