"""Characters that turn the text after them round are seen in lists, and turn nothing round."""

from __future__ import annotations

import pytest
from django.test import Client

from a2a_tasks.models import Message
from tests.support.console.admin.rows import add_run, make_task
from tests.support.push.rows import make_config, make_delivery, make_receiver
from tests.support.rows import rolled_back, rows

pytestmark = pytest.mark.django_db

TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
LISTS = [
    *("a2a_tasks/task", "a2a_tasks/run", "a2a_tasks/context"),
    *("a2a_push/delivery", "a2a_push/pushconfig", "a2a_push/receiver"),
]


@rows("path", LISTS, within=rolled_back)
def test_no_line_of_a_list_can_be_turned_round(path: str, admin_client: Client) -> None:
    name = f"pay-{TURNING}gnp.exe"
    task = make_task(f"id-{name}", owner=f"owner-{name}", context_id=f"context-{name}")
    Message.objects.filter(task=task).update(opening=f"says {name}")
    add_run(task, worker=f"on {name}")
    receiver = make_receiver(f"https://hooks.example.com/{name}")
    make_delivery(make_config(task, f"config-{name}", receiver=receiver), reason=name)
    page = admin_client.get(f"/admin/{path}/")
    assert page.status_code == 200
    assert "[U+202E]" in page.text
    assert [f"U+{ord(char):04X}" for char in TURNING if char in page.text] == []


def test_what_joins_the_parts_of_a_picture_is_left_alone(admin_client: Client) -> None:
    family = "\U0001f469\u200d\U0001f467"
    task = make_task()
    Message.objects.filter(task=task).update(opening=f"says {family}")
    assert family in admin_client.get("/admin/a2a_tasks/task/").text
