"""How webhooks do, among the statistics of the host."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import QuerySet
from django.utils import timezone

from a2a_console.statistics import webhooks
from a2a_console.statistics.counts import PERIODS
from a2a_console.statistics.webhooks import WebhookStatistics, report_webhooks
from a2a_push.models import DeliveryStatus
from a2a_tasks.models import Task
from tests.support.console.admin.rows import make_task
from tests.support.push.rows import make_config, make_delivery, make_receiver

pytestmark = pytest.mark.django_db
HOUR = PERIODS["hour"]


def everything(rows: QuerySet[Any], by: str) -> QuerySet[Any]:
    return rows


def acme(rows: QuerySet[Any], by: str) -> QuerySet[Any]:
    return rows.filter(**{f"{by}tenant": "acme"})


def told(narrow: Any = everything) -> WebhookStatistics:
    return report_webhooks(HOUR, HOUR.begin(timezone.now()), narrow)


def numbers(found: WebhookStatistics) -> dict[str, float | None]:
    return {number.name: number.value for number in found.numbers}


class TestWebhooks:
    def test_tells_how_many_were_delivered_and_how_many_are_dead(self) -> None:
        config = make_config(make_task())
        for status in [DeliveryStatus.DELIVERED] * 3 + [DeliveryStatus.DEAD]:
            make_delivery(config, status)
        make_delivery(config, DeliveryStatus.DEAD, settled_at=timezone.now() - timedelta(hours=3))
        make_delivery(config, DeliveryStatus.CANCELLED)
        found = numbers(told())
        assert (found["delivered"], found["dead"]) == (3, 1)

    def test_tells_what_waits_and_for_how_long(self) -> None:
        config, now = make_config(make_task()), timezone.now()
        make_delivery(config, next_at=now - timedelta(minutes=5))
        make_delivery(config, next_at=now + timedelta(minutes=5))
        found = numbers(told())
        assert found["pending"] == 2
        assert found["late"] == pytest.approx(300, abs=60)

    def test_has_nothing_to_tell_where_there_are_none(self) -> None:
        found = told()
        assert numbers(found) == {"delivered": 0, "dead": 0, "pending": 0, "late": None}
        assert not found.receivers

    def test_has_the_slots_of_the_period(self) -> None:
        make_delivery(make_config(make_task()), DeliveryStatus.DELIVERED)
        series = told().series
        assert {label: sum(values) for label, values in series.items()} == {
            "delivered": 1,
            "dead": 0,
        }
        assert {len(values) for values in series.values()} == {HOUR.slots}

    def test_names_the_receivers_with_most_dead_deliveries_then_with_most_pending_ones(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(webhooks, "TOP", 3)
        task = make_task()
        well, slow, dead, other = (
            make_config(task, f"c-{n}", receiver=make_receiver(f"https://{n}.example.com/"))
            for n in range(4)
        )
        for _ in range(3):
            make_delivery(well, DeliveryStatus.DELIVERED)
        make_delivery(slow)
        make_delivery(dead, DeliveryStatus.DEAD)
        make_delivery(dead)
        make_delivery(other, DeliveryStatus.DELIVERED)
        assert [
            (line.receiver, line.delivered, line.dead, line.pending) for line in told().receivers
        ] == [(dead.receiver, 0, 1, 1), (slow.receiver, 0, 0, 1), (well.receiver, 3, 0, 0)]

    def test_is_cut_to_what_there_is_for_who_asks(self) -> None:
        make_delivery(make_config(make_task()), DeliveryStatus.DEAD)
        mine = make_task("mine")
        Task.objects.filter(pk=mine.pk).update(tenant="acme")
        config = make_config(mine, receiver=make_receiver("https://acme.example.com/"))
        make_delivery(config, DeliveryStatus.DELIVERED)
        make_delivery(config)
        found = told(acme)
        assert numbers(found) | {"late": None} == {
            "delivered": 1,
            "dead": 0,
            "pending": 1,
            "late": None,
        }
        assert [line.receiver for line in found.receivers] == [config.receiver]
