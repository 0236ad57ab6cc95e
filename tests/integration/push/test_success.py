"""How webhooks do, among the figures of the host."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import QuerySet
from django.utils import timezone

from a2a_push.models import Status
from a2a_push.store.success import webhooks
from a2a_tasks.models import Task
from a2a_tasks.store.figures import PERIODS, Beside
from tests.support.admin.rows import make_task
from tests.support.push.admin.rows import make_config, make_delivery

pytestmark = pytest.mark.django_db
HOUR = PERIODS["hour"]


def everything(rows: QuerySet[Any], by: str) -> QuerySet[Any]:
    """All rows."""
    return rows


def acme(rows: QuerySet[Any], by: str) -> QuerySet[Any]:
    """Those of one tenant."""
    return rows.filter(**{f"{by}tenant": "acme"})


def told(narrow: Any = everything) -> Beside:
    """The figures of the past hour."""
    return webhooks(HOUR, HOUR.begin(timezone.now()), narrow)


def numbers(found: Beside) -> dict[str, float | None]:
    """Its numbers by their names."""
    return {number.name: number.value for number in found.numbers}


class TestWebhooks:
    def test_tells_how_many_of_100_were_delivered(self) -> None:
        config = make_config(make_task())
        for status in [Status.DELIVERED] * 3 + [Status.DEAD]:
            make_delivery(config, status)
        make_delivery(config, Status.DEAD, settled_at=timezone.now() - timedelta(hours=3))
        make_delivery(config, Status.CANCELLED)
        found = numbers(told())
        assert (found["success"], found["delivered"], found["dead"]) == (75, 3, 1)

    def test_tells_what_waits_and_for_how_long(self) -> None:
        config, now = make_config(make_task()), timezone.now()
        make_delivery(config, next_at=now - timedelta(minutes=5))
        make_delivery(config, next_at=now + timedelta(minutes=5))
        found = numbers(told())
        assert found["pending"] == 2
        assert found["late"] == pytest.approx(300, abs=60)

    def test_has_nothing_to_tell_where_there_are_none(self) -> None:
        found = numbers(told())
        assert (found["success"], found["pending"], found["late"]) == (None, 0, None)

    def test_has_the_slots_of_the_period(self) -> None:
        make_delivery(make_config(make_task()), Status.DELIVERED)
        delivered, dead = told().series
        assert (len(delivered.values), sum(filter(None, delivered.values))) == (HOUR.slots, 1)
        assert not any(dead.values)

    def test_is_cut_to_what_there_is_for_who_asks(self) -> None:
        make_delivery(make_config(make_task()), Status.DEAD)
        mine = make_task("mine")
        Task.objects.filter(pk=mine.pk).update(tenant="acme")
        make_delivery(make_config(mine), Status.DELIVERED)
        assert numbers(told(acme))["success"] == 100
