"""What a route asks of the database does not grow with what there is."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from a2a_console.search import selection
from a2a_console.statistics import reports
from a2a_push.models import DeliveryStatus
from a2a_tasks.access.api_keys import issue
from a2a_tasks.models import RunStatus
from tests.integration.console.api.test_who_may import ROUTES, Route
from tests.support.console.admin.rows import add_artifact, add_run, make_task
from tests.support.console.api.rights import RIGHTS
from tests.support.console.api.world import World, asked, person, populated
from tests.support.push.rows import add_attempt, make_config, make_delivery, make_receiver

pytestmark = pytest.mark.django_db

READS = [route for route in ROUTES if not route.is_noted]
#: Two are the session's and the person's, two the permissions'; agents are counted once a state. What ended is read in a
#: transaction with a deadline. A page of tasks looks at up to four windows of keys, and begins a transaction with the second.
MAX_COUNT = {
    "get_statistics": 20,
    "list_agents": 22,
    "get_agent": 22,
    "get_task": 14,
    "list_tasks": 18,
    "get_task_diagnosis": 15,
}


def more_of(world: World) -> None:
    """Several more of everything, beside it and below it."""
    for n in range(4):
        task = make_task(f"more-{n}", context_id="context-one")
        receiver = make_receiver(f"https://more.example.com/{n}")
        delivery = make_delivery(make_config(task, receiver=receiver), DeliveryStatus.DEAD)
        for below in (world.delivery, delivery):
            add_attempt(below)
        add_artifact(world.task, f"more-{n}", "x")
        add_run(world.task, RunStatus.FAILED)
        add_run(task)
        issue(f"more {n}")


def count(client: Client, path: str) -> int:
    """The queries of one request, to a process that has kept no statistics."""
    reports.forget()
    with CaptureQueriesContext(connection) as queries:
        assert asked(client, path).status == 200
    return len(queries)


@pytest.mark.parametrize("route", READS, ids=lambda route: route.name)
def test_is_bounded(route: Route, monkeypatch: pytest.MonkeyPatch) -> None:
    # Keys go on from test to test: into how many windows they fall, and how many there is time for, would be chance.
    monkeypatch.setattr(selection, "FIRST", 10**9)
    world, bob = populated(), person(RIGHTS[route.name][1])
    path = world.at(route.path)
    count(bob, path)
    before = count(bob, path)
    more_of(world)
    assert count(bob, path) == before <= MAX_COUNT.get(route.name, 10)
