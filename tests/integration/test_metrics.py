"""`/metrics`: who may read it, and what it says."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import re
import urllib.request
from collections.abc import Iterator, Mapping

import httpx
import psycopg
import pytest
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from a2a_project import metrics_port
from a2a_project.asgi import application
from a2a_project.shared_read import shared_reads
from a2a_push.models import Delivery, Receiver
from a2a_push.retry_schedule import Retry
from a2a_tasks.access import api_keys
from a2a_tasks.access.credentials import PEER
from a2a_tasks.bindings.http import Receive, Scope, Send
from a2a_tasks.conf import conf
from a2a_tasks.models import PARKED, Event, Run, Task
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.replies import reply
from tests import ROOT
from tests.integration.push.test_work import settled as answered
from tests.integration.push.test_work import take, task
from tests.support.ports import free_port
from tests.support.push.configs import registered
from tests.support.push.inbox import delivering, inbox, pen, register, settled
from tests.support.sessions import WAITS_FOR_A_LOCK, count_sessions
from tests.support.store.world import Pen, accepted, held, new

pytestmark = pytest.mark.django_db
Samples = dict[tuple[str, str], float]


async def ask(headers: Mapping[str, str] | None = None, *, by: str = "10.0.0.7") -> httpx.Response:
    """What somebody at this address is answered."""
    transport = httpx.ASGITransport(app=application, client=(by, 4711))
    async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
        return await client.get("/metrics", headers=headers)


def read(text: str) -> Samples:
    """Samples by name and the value of their first label."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name, next(iter(sample.labels.values()), "")] = sample.value
    return found


async def shown(settings: Settings) -> Samples:
    """What it says to a listed network."""
    settings.A2A_METRICS_PEERS = "10.0.0.0/8"
    answer = await ask()
    assert answer.status_code == 200
    return read(answer.text)


class TestWhoMayRead:
    async def test_is_nobody_unless_somebody_is_let_in(self) -> None:
        for by in ("10.0.0.7", "127.0.0.1", "::1"):
            answer = await ask(by=by)
            assert (answer.status_code, answer.text) == (404, '{"error":"not found"}')

    async def test_is_a_listed_network_and_no_other(self, settings: Settings) -> None:
        settings.A2A_METRICS_PEERS = "10.0.0.0/8, ::1"
        assert [(await ask(by=by)).status_code for by in ("10.0.0.7", "::1")] == [200, 200]
        assert [(await ask(by=by)).status_code for by in ("11.0.0.7", "", "unix")] == [404] * 3

    async def test_is_not_whom_a_proxy_speaks_for(self, settings: Settings) -> None:
        """A trusted proxy sends on what its clients say; the scope then has both."""
        settings.A2A_METRICS_PEERS = "10.0.0.0/8"

        async def behind(scope: Scope, receive: Receive, send: Send) -> None:
            await application({**scope, PEER: ("192.0.2.1", 1)}, receive, send)

        transport = httpx.ASGITransport(app=behind, client=("10.0.0.7", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
            assert (await client.get("/metrics")).status_code == 404

    async def test_is_a_caller_with_the_scope(self) -> None:
        good = await run_in_thread(api_keys.issue, "prometheus", scopes=["metrics"])
        other = await run_in_thread(api_keys.issue, "an agent's", scopes=["tables"])
        assert (await ask({"X-API-Key": good.key})).status_code == 200
        for key in (other.key, good.key[:-1] + ("A" if good.key[-1] != "A" else "B"), "x"):
            answer = await ask({"X-API-Key": key})
            assert (answer.status_code, answer.text) == (404, '{"error":"not found"}')


class TestWhatItSays:
    async def test_counts_this_process_s_attempts_by_how_they_ended(
        self, settings: Settings
    ) -> None:
        settings.A2A_WEBHOOK_ALLOW_HTTP = settings.A2A_WEBHOOK_ALLOW_PRIVATE = True
        before = await shown(settings)
        writer = await pen()
        async with inbox() as receiver, delivering():
            await register(receiver.url())
            await run_in_thread(writer.end)
            await settled(1)
        after = await shown(settings)
        for name in ("count", "sum"):
            key = (f"a2a_webhook_attempt_seconds_{name}", "delivered")
            assert after[key] > before.get(key, 0.0)
        assert after["a2a_webhooks_under_way", ""] == 0

    async def test_tells_how_it_stands_in_the_tables(self, settings: Settings) -> None:
        await run_in_thread(self.stand)
        found = await shown(settings)
        assert {
            name: found[name, ""]
            for name in (
                "a2a_database_up",
                "a2a_webhooks_due",
                "a2a_webhook_deliveries_pending",
            )
        } == {"a2a_database_up": 1, "a2a_webhooks_due": 1, "a2a_webhook_deliveries_pending": 1}
        blocked = "a2a_webhook_receivers_blocked"
        assert [found[blocked, by] for by in ("breaker", "paused", "disabled")] == [0, 1, 0]
        assert (found["a2a_runs", "queued"], found["a2a_runs", "running"]) == (0, 1)
        assert found["a2a_queue_workers", "agents"] == 0

    @staticmethod
    def stand() -> None:
        """One waits for the schedule and is an hour late; one has something new; both tasks have ended but one."""
        task("task-1", url="https://one.example.com/")
        (one,) = take()
        answered(one, Retry(0.0))
        Delivery.objects.update(next_at=Now() - datetime.timedelta(hours=1))
        Receiver.objects.update(paused_until=Now() + datetime.timedelta(hours=1))
        writer = Pen(held("task-2"))
        registered("c-2", task_id="task-2", url="https://two.example.com/")
        writer.state(TaskState.WORKING)

    async def test_webhooks_are_late_if_they_could_be_sent(self, settings: Settings) -> None:
        """A receiver that is paused is late by its own fault; an event is late also while no pusher looks at it."""
        late, hour = ("a2a_webhook_late_seconds", ""), datetime.timedelta(hours=1)
        await run_in_thread(self.stand)
        assert (await shown(settings))[late] < 600
        await run_in_thread(Receiver.objects.update, paused_until=None)
        assert 3590 < (await shown(settings))[late] < 4200
        unseen = Event.objects.filter(task__public_id="task-2")
        await run_in_thread(unseen.update, created_at=Now() - 2 * hour)
        assert 7190 < (await shown(settings))[late] < 7800

    async def test_tells_how_long_runs_wait_for_a_slot_and_tasks_for_people(
        self, settings: Settings
    ) -> None:
        await run_in_thread(self.wait)
        found = await shown(settings)
        assert found["a2a_queue_depth", "agents"] == 1
        assert found["a2a_runs", "behind"] == 1
        assert 600 <= found["a2a_queue_oldest_seconds", "agents"] < 700
        asked = ("demo", "others")  # an agent that is not hosted any more has no series of its own
        assert [found["a2a_waiting_for_people", agent] for agent in asked] == [2, 1]
        ages = [found["a2a_waiting_for_people_oldest_seconds", agent] for agent in asked]
        assert [round(age / 3600) for age in ages] == [2, 1]

    @staticmethod
    def wait() -> None:
        """A run waits, one is behind it, and one is parked; three tasks ask."""
        now, hour = timezone.now(), datetime.timedelta(hours=1)
        first, parked = (accepted(name) for name in ("first", "parked"))
        behind = reply(new("first", text="more"))
        Run.objects.filter(pk=first.run).update(due_at=now - hour / 6)
        Run.objects.filter(pk=behind.run).update(due_at=now - hour)
        Run.objects.filter(pk=parked.run).update(due_at=now - hour, round=PARKED)
        for number, (agent, age) in enumerate(
            [("demo", 2 * hour), ("gone", hour), ("demo", hour / 2)]
        ):
            Pen(held(f"asks-{number}")).state(TaskState.INPUT_REQUIRED)
            Task.objects.filter(public_id=f"asks-{number}").update(agent=agent, status_at=now - age)

    async def test_is_what_the_runbook_explains(self, settings: Settings) -> None:
        await run_in_thread(self.wait)
        settings.A2A_METRICS_PEERS = "10.0.0.0/8"
        families = list(text_string_to_metric_families((await ask()).text))
        page = (ROOT / "docs" / "telemetry.md").read_text(encoding="utf-8")
        rows = re.findall(r"^\| `(a2a_\w+)(?:\{(\S+)\})?`", page, re.MULTILINE)
        labels = {
            name.removesuffix("_total"): set(filter(None, given.split(","))) for name, given in rows
        }
        assert {
            family.name for family in families if re.match("a2a_.*(?<!_created)$", family.name)
        } == labels.keys()
        for sample in (sample for family in families for sample in family.samples):
            name = re.sub(r"_(bucket|count|sum|total|created)$", "", sample.name)
            assert sample.labels.keys() - {"le"} == labels.get(name, sample.labels.keys())

    async def test_names_no_tenant_address_or_task(self, settings: Settings) -> None:
        await run_in_thread(self.stand)
        settings.A2A_METRICS_PEERS = "10.0.0.0/8"
        text = (await ask()).text
        assert [word for word in ("example.com", "task-1", "c-2") if word in text] == []

    async def test_goes_on_without_the_database(
        self, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def away() -> None:
            raise Overloaded.away(undone=True)

        monkeypatch.setattr("a2a_project.metrics.ask_database", away)
        monkeypatch.setattr("a2a_project.gauges.read_counts", away)
        found = await shown(settings)
        assert (found["a2a_database_up", ""], found["a2a_gauges_up", ""]) == (0, 0)
        assert ("a2a_webhooks_due", "") not in found
        assert ("process_cpu_seconds_total", "") in found

    @pytest.mark.parametrize("seconds", ["0", "-1"])
    async def test_does_not_wait_for_a_slow_database_longer_than_prometheus(
        self, settings: Settings, seconds: str
    ) -> None:
        settings.A2A_METRICS_PEERS = "10.0.0.0/8"
        answer = await ask({"X-Prometheus-Scrape-Timeout-Seconds": seconds})
        found = read(answer.text)
        assert found["a2a_database_up", ""] == 0
        assert ("process_cpu_seconds_total", "") in found

    @pytest.mark.parametrize("seconds", ["10", "nan", "inf", "soon"])
    async def test_believes_no_strange_time(self, settings: Settings, seconds: str) -> None:
        settings.A2A_METRICS_PEERS = "10.0.0.0/8"
        answer = await ask({"X-Prometheus-Scrape-Timeout-Seconds": seconds})
        assert read(answer.text)["a2a_database_up", ""] == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.backend("stack")
class TestADatabaseThatIsSlow:
    async def test_is_not_away_and_scrapes_hold_one_thread_of_the_store_together(
        self, settings: Settings
    ) -> None:
        settings.A2A_METRICS_PEERS = "10.0.0.0/8"
        short = {"X-Prometheus-Scrape-Timeout-Seconds": "4"}  # the database has half of it
        with table_locked("a2a_tasks_worker"):
            answers = [await ask(short)]
            answers += await asyncio.gather(*(ask(short) for _ in range(2 * conf.STORE_THREADS)))
            assert await run_in_thread(count_sessions, WAITS_FOR_A_LOCK) <= 1
        for answer in answers:
            found = read(answer.text)
            assert (found["a2a_database_up", ""], found["a2a_gauges_up", ""]) == (1, 0)
        await asyncio.gather(shared_reads.join(), return_exceptions=True)  # the read of before
        found = await shown(settings)
        assert (found["a2a_gauges_up", ""], found["a2a_queue_workers", "agents"]) == (1, 0)


@contextlib.contextmanager
def table_locked(name: str) -> Iterator[None]:
    """Hold a table so that nobody reads it, in a session of its own."""
    with psycopg.connect(**connection.get_connection_params()) as session:
        session.execute(f"lock table {name} in access exclusive mode")
        yield
        session.rollback()


class TestAWorker:
    def test_shows_its_own_counters_where_it_is_told(self, settings: Settings) -> None:
        settings.A2A_METRICS_LISTEN = f"127.0.0.1:{free_port()}"
        metrics_port.listen()
        with urllib.request.urlopen(f"http://{settings.A2A_METRICS_LISTEN}/metrics") as answer:
            assert b"a2a_webhooks_under_way" in answer.read()

    @pytest.mark.parametrize("address", ["", "127.0.0.1", "127.0.0.1:99999", "nowhere.invalid:9"])
    def test_works_all_the_same_without(self, settings: Settings, address: str) -> None:
        settings.A2A_METRICS_LISTEN = address
        metrics_port.listen()
