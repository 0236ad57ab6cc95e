"""Tasks are found by the webhooks that were not told."""

from __future__ import annotations

import pytest

from a2a_console.search.selection import Selection, page
from a2a_console.search.task_flags import find_troubled
from a2a_push.models import DeliveryStatus
from a2a_tasks.models import Task
from tests.support.console.admin.rows import make_task
from tests.support.push.rows import make_config, make_delivery

pytestmark = pytest.mark.django_db


def test_those_with_a_dead_delivery_are_in_trouble_and_no_others() -> None:
    for name, status in (("dead", DeliveryStatus.DEAD), ("well", DeliveryStatus.DELIVERED)):
        config = make_config(make_task(name), name)
        for number in range(2):
            make_delivery(config, status, webhook_id=f"msg-{name}-{number}")
    make_task("find_undelivered")
    found = page(Task.objects.all(), Selection(mark="webhooks"), size=10).items
    assert [task.public_id for task in found] == ["dead"]
    assert len(list(find_troubled(1))) == 1
