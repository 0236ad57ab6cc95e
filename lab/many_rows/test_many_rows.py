"""What the pages and the API read while every table has a hundred thousand rows, and while one row has as many below it.

PostgreSQL counts the rows and the index entries that it looked at, so the result does not depend on the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import NamedTuple

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection, models
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from a2a_console.statistics import reports
from a2a_push.models import Attempt, Delivery, PushConfig
from a2a_tasks.models import (
    Artifact,
    Budget,
    BudgetUse,
    Delegation,
    Event,
    Grant,
    Message,
    Run,
    RunLine,
    RunStatus,
    Step,
    Task,
    Worker,
)
from a2a_tasks.models.run import PARKED
from a2a_tasks.protocol.values import TaskState
from tests.integration.console.admin.pages import everything, pages
from tests.integration.console.api.test_who_may import ROUTES
from tests.support.console.admin.rows import add_run, add_usage, make_task
from tests.support.console.api.world import API, populated, wait
from tests.support.store.copies import copy_children, copy_worlds
from tests.support.store.reading import count_rows

pytestmark = [pytest.mark.django_db, pytest.mark.backend("stack"), pytest.mark.timeout(600)]

#: There are two worlds of rows, so there are 100,000 rows of most kinds.
WORLDS, CHILDREN = 50_000, 100_000
#: The most rows and index entries that a page may look at: several counts that stop at 10,000 rows each.
ROWS = 70_000
#: The most bytes and statements of a page; the overview asks for each kind of notice, and for each queue.
BYTES, STATEMENTS = 500_000, 90
#: What reads more, by a part of its address, and why: (rows, reason). A million index entries take about half a second.
MORE = {
    "/admin/?": (1_500_000, "it sums what ended in an hour, within two seconds or not at all"),
    f"{API}/statistics": (1_500_000, "the same sums"),
    "?q=": (800_000, "a search for a part of a name reads a table, or its newest 100,000 rows"),
    "/change/": (1_800_000, "what lies below one row is read and sorted once: runs, steps, lines"),
    "/admin/a2a_push/receiver/": (
        3_500_000,
        "it counts the deliveries of a day, within two seconds or not at all",
    ),
    "/admin/a2a_tasks/task/": (
        400_000,
        "each tab is counted to 10,000, and each kind of stuck tasks to 5,000",
    ),
    "/admin/auth/user/": (250_000, "Django's own page"),
    "/admin/a2a_tasks/auditentry/": (500_000, "it searches the newest 100,000 entries"),
    "/admin/a2a_push/delivery/": (130_000, "its filter searches the newest 100,000 receivers"),
    "/admin/a2a_tasks/waiting/": (600_000, "the users who may answer are among the users"),
    f"{API}/agents": (400_000, "each state, and each kind of runs, is counted to 10,000"),
    "/admin/a2a_tasks/agentswitch/": (500_000, "the same, and the page of an agent its tasks"),
    "usage": (250_000, "each report of the span is read once"),
}
#: What lies below the first row of another table, and the column that its rows count on.
BELOW: dict[type[models.Model], str] = {
    Event: "number",
    Message: "number",
    Artifact: "position",
    Step: "name",
    Run: "input_number",
    RunLine: "number",
    Attempt: "number",
    Delivery: "webhook_id",
    PushConfig: "public_id",
    Task: "public_id",
    BudgetUse: "subject",
}


class Asked(NamedTuple):
    """What one request took."""

    place: str
    rows: int
    statements: int
    size: int

    @property
    def is_too_much(self) -> bool:
        allowed = max(
            (rows for words, (rows, _) in MORE.items() if words in f"{self.place}?"), default=ROWS
        )
        return self.rows > allowed or self.statements > STATEMENTS or self.size > BYTES


@pytest.fixture
def operator() -> Client:
    """A superuser, with rows for every page."""
    root = User.objects.create_superuser("root", password="x")
    root.groups.add(Group.objects.create(name="tenant:acme"))
    client = Client()
    client.force_login(root)
    everything()
    return client


@pytest.fixture
def places(operator: Client) -> list[str]:
    """The pages of all tables and of their first rows, and the routes that read."""
    world = populated()
    wait(world)
    add_usage(world.task)
    Grant.objects.create(agent="demo", grantee="key:abc", right="use")
    add_call()
    left_out = ("/add/", "/history/", "/delete/", "?q=x")
    found = [place for place in pages() if not place.endswith(left_out)]
    searched = [place for place in pages() if place.endswith("?q=x")]
    routes = [world.at(route.path) for route in ROUTES if route.verb == "get"]
    usage = [f"/admin/usage/?by={by}" for by in ("day", "task", "caller")]
    return [*found, *searched, *usage, *routes]


def add_call() -> None:
    """A caller that is parked until the task which it has called has ended."""
    caller = make_task("caller", state=TaskState.WORKING, agent="caller", context_id="calls")
    called = make_task("called", state=TaskState.WORKING, context_id="called")
    add_run(caller, round=PARKED, awaits_calls=True, due_at=timezone.now() + timedelta(days=1))
    add_run(called, RunStatus.RUNNING)
    Delegation.objects.create(
        child=called,
        parent=caller,
        input_number=1,
        name="call it",
        root=caller.pk,
        depth=1,
        path="[]",
    )


def visit(client: Client, places: list[str]) -> Iterator[Asked]:
    """Ask for each place once, as a process that has kept no statistics."""
    client.get("/admin/")
    for place in places:
        reports.forget()
        before = count_rows(entries=True)
        with CaptureQueriesContext(connection) as queries:
            answer = client.get(place)
        assert answer.status_code in {200, 302, 403, 404}, place
        size = 0 if answer.streaming else len(answer.content)
        yield Asked(place, count_rows(entries=True) - before, len(queries), size)


def test_no_page_reads_a_whole_table_or_all_that_lies_below_a_row(
    operator: Client, places: list[str]
) -> None:
    """It is one test: the rows of a test that was rolled back would still lie in the tables, and be passed over."""
    copy_worlds(WORLDS)
    copy_children(BELOW, CHILDREN)
    assert min(table._base_manager.count() for table in BELOW) > CHILDREN
    assert min(table.objects.count() for table in (Budget, Delegation, Worker)) > WORLDS
    too_much = [str(asked) for asked in visit(operator, places) if asked.is_too_much]
    assert not too_much, "\n".join(too_much)
