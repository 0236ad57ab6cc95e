"""The pages of workers: who is there, who has gone silent, and what each holds."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from a2a_tasks.models import RunStatus, Worker
from tests.integration.store.test_workers import beat, silent
from tests.support.console.admin.people import SignIn
from tests.support.console.admin.rows import add_run, make_task
from tests.support.store.world import accepted

pytestmark = pytest.mark.django_db

LIST = "/admin/a2a_tasks/worker/"


def page(name: str) -> str:
    return f"{LIST}{Worker.objects.get(name=name).pk}/change/"


def text(answer: object) -> str:
    return " ".join(answer.content.decode().split())  # type: ignore[attr-defined]


class TestList:
    def test_says_of_each_how_it_stands(self, admin_client: Client) -> None:
        beat("a:1", running=3)
        beat("b:2", draining=True)
        beat("c:3")
        silent("c:3", 60)
        answer = admin_client.get(LIST)
        states = {told.worker.name: state for told, state, _ in answer.context["workers"]}
        assert states == {"a:1": "alive", "b:2": "draining", "c:3": "dead"}
        assert "3 of 10" in text(answer)
        assert re.search(r"1 min( \d+ s)? ago", text(answer))

    def test_asks_the_same_few_queries_however_many_there_are(self, admin_client: Client) -> None:
        beat("a:1")
        with CaptureQueriesContext(connection) as few:
            admin_client.get(LIST)
        for number in range(30):
            beat(f"b:{number}")
        with CaptureQueriesContext(connection) as many:
            admin_client.get(LIST)
        assert len(many) == len(few) <= 5

    def test_names_the_queues_that_nobody_serves(self, admin_client: Client) -> None:
        beat("a:1", queues=["agents"])
        accepted("task-1", queue="night")
        assert "serves the queue <bdi>night</bdi>" in text(admin_client.get(LIST))
        assert "<bdi>agents</bdi>" not in text(admin_client.get(LIST))
        beat("b:1", queues=["night"])
        assert "takes from the queue" not in text(admin_client.get(LIST))

    def test_is_for_staff_that_sees_every_tenant(self, sign_in: SignIn) -> None:
        assert sign_in("view_worker").get(LIST).status_code == 403

    def test_none_is_a_hint_at_the_setting(self, admin_client: Client) -> None:
        assert "A2A_PRESENCE_SECONDS" in text(admin_client.get(LIST))


class TestPage:
    def test_lists_what_it_holds_with_its_tasks(self, admin_client: Client) -> None:
        beat()
        run = add_run(make_task("held"), RunStatus.RUNNING, worker="here:1")
        add_run(make_task("ended"), RunStatus.ENDED, worker="here:1")
        shown = text(admin_client.get(page("here:1")))
        assert f"/admin/a2a_tasks/run/{run.pk}/change/" in shown
        assert ">held<" in shown
        assert ">ended<" not in shown

    def test_shows_no_runs_to_who_may_not_see_them(self, sign_in: SignIn) -> None:
        beat()
        add_run(make_task("held"), RunStatus.RUNNING, worker="here:1")
        bob = sign_in("view_worker", "see_all_tenants")
        assert "What it holds" not in text(bob.get(page("here:1")))

    def test_asks_the_same_few_queries_however_much_it_holds(self, admin_client: Client) -> None:
        beat()
        add_run(make_task("held"), RunStatus.RUNNING, worker="here:1")
        with CaptureQueriesContext(connection) as few:
            admin_client.get(page("here:1"))
        for number in range(120):
            add_run(make_task(f"held-{number}"), RunStatus.RUNNING, worker="here:1")
        with CaptureQueriesContext(connection) as many:
            shown = text(admin_client.get(page("here:1")))
        assert len(many) == len(few) <= 7
        assert "the oldest 100" in shown

    def test_nothing_on_it_can_be_changed(self, admin_client: Client) -> None:
        beat()
        assert admin_client.post(page("here:1"), {"name": "x"}).status_code == 403
        assert admin_client.get(f"{LIST}add/").status_code == 403
