"""Webhooks that arrive: from the log to real receivers, whatever these answer, on both databases."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import functools
import json
import time
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace

import psycopg
import pytest
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone
from pytest_django import Settings

from a2a_console.webhooks import receiver_health
from a2a_project import startup
from a2a_push import breaker, delivery, jobs, receiver_queue
from a2a_push.breaker import Breaker
from a2a_push.delivery import Deliverer
from a2a_push.envelope import OMITTED, webhook_id
from a2a_push.keyring import Audience
from a2a_push.keys import ring
from a2a_push.models import Delivery, PushConfig, Receiver
from a2a_push.store import claims, configs, receivers, replays, results, switches
from a2a_push.store.delivery_selection import DeliverySelection
from a2a_push.store.records import Candidate
from a2a_tasks import pubsub
from a2a_tasks.models import Event, Task
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.protocol.dialects import DIALECTS
from a2a_tasks.protocol.dialects.v10 import V10
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import EventKind
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import tasks
from a2a_tasks.store.db import run_in_thread
from tests.support.execution.host import take_away
from tests.support.execution.waiting import until
from tests.support.push.configs import config as whole
from tests.support.push.inbox import OK, Inbox, delivering, inbox, pen, register, row, settled, told
from tests.support.push.receivers import Seen, answer, nobody
from tests.support.push.verification import SignatureMismatch, verify
from tests.support.store.world import ALICE, CHARLIE, Pen, claim

pytestmark = pytest.mark.django_db
WORKING, COMPLETED = TaskState.WORKING, TaskState.COMPLETED
INPUT_REQUIRED = TaskState.INPUT_REQUIRED


@pytest.fixture(autouse=True)
def quick(settings: Settings) -> None:
    """Receivers are on this machine, and a second is a millisecond."""
    settings.A2A_WEBHOOK_ALLOW_HTTP = True
    settings.A2A_WEBHOOK_ALLOW_PRIVATE = True
    settings.A2A_WEBHOOK_TIME_SCALE = 0.001
    settings.A2A_POLL_SECONDS = 0.05


@pytest.fixture
async def receiver() -> AsyncIterator[Inbox]:
    """Somebody who is told."""
    async with inbox() as made:
        yield made


def replay(selection: DeliverySelection) -> int:
    """Send the selected deliveries again; returns their number."""
    return replays.replay(selection.keys())


async def story(writer: Pen) -> None:
    """A task from its beginning to its end."""
    await run_in_thread(writer.state, WORKING)
    await run_in_thread(writer.begin, "a", "one ")
    await run_in_thread(writer.close, "a", "two")
    await run_in_thread(writer.end)


def _add_up(receiver: Inbox) -> dict[str, str]:
    """The texts of the artifacts for a receiver that joins what comes, by their ids."""
    texts: dict[str, str] = {}
    for seen in receiver.seen:
        body = json.loads(seen.body)
        update = body.get("artifactUpdate") or body
        whole = (body.get("task") or body).get("artifacts") or ()
        for artifact in (*whole, *([update["artifact"]] if "artifact" in update else ())):
            before = texts.get(artifact["artifactId"], "") if update.get("append") else ""
            text = "".join(part["text"] for part in artifact["parts"])
            texts[artifact["artifactId"]] = before + text
    return texts


class NewDialect(V10):
    """A dialect that is one class."""

    code, push_media_type, token_headers = "new", "text/new", ("X-New",)


class TestATask:
    """What is told of one task."""

    @pytest.mark.parametrize("dialect", ["v10", "new"])
    async def test_is_told_from_its_beginning_to_its_end(
        self, receiver: Inbox, dialect: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(DIALECTS, NewDialect.code, NewDialect())
        writer, spoken = await pen(), DIALECTS[dialect]
        await register(receiver.url(), dialect=dialect, token="mine")
        async with delivering():
            await story(writer)
            await settled(3)
        assert receiver.said == ["working", "one two", "completed"]
        for seen in receiver.seen:
            assert seen.header("content-type") == [spoken.push_media_type]
            assert seen.header(spoken.token_headers[0].lower()) == ["mine"]

    @pytest.mark.parametrize(
        ("dialect", "is_told_before"),
        [("v10", True), ("v10", False), ("v03", False), ("v02", False)],
    )
    async def test_adds_up_to_the_text_of_one_attempt_after_a_death(
        self, receiver: Inbox, dialect: str, is_told_before: bool
    ) -> None:
        """What the dead attempt said may have been told, or lie in the log beside what the next one says.

        Receivers of 0.3 and 0.2 are told of whole tasks, and so of no artifact before its task changes.
        """
        dead = await pen()
        await register(receiver.url(), dialect=dialect)
        await run_in_thread(dead.begin, "a", "one ")
        await run_in_thread(dead.close, "a", "one ")
        async with delivering() if is_told_before else contextlib.nullcontext():
            if is_told_before:
                await until(lambda: "one one " in _add_up(receiver).values())
            await run_in_thread(take_away)
            (again,) = await run_in_thread(claim)
            next_ = Pen(again)
            await run_in_thread(next_.begin, "a", "one ")
            await run_in_thread(next_.close, "a", "two")
            await run_in_thread(next_.end)
        async with delivering():
            await until(lambda: receiver.said[-1:] == ["completed"])
        assert _add_up(receiver) == {"a": "one two"}

    async def test_is_told_with_the_credentials_of_the_webhook(self, receiver: Inbox) -> None:
        writer = await pen()
        await register(receiver.url(), schemes=("Basic",), credentials="abc", token="mine")
        async with delivering():
            await run_in_thread(writer.end)
            await receiver.has(1)
        (seen,) = receiver.seen
        assert seen.header("authorization") == ["Basic abc"]
        assert seen.header("x-a2a-notification-token") == ["mine"]
        assert seen.header("content-type") == ["application/a2a+json"]

    async def test_is_signed_for_its_tenant_and_no_other_at_the_same_receiver(
        self, receiver: Inbox
    ) -> None:
        writer = await pen(scope=CHARLIE)
        await run_in_thread(
            configs.create, CHARLIE, whole(url=receiver.url(), token="", schemes=())
        )
        async with delivering():
            await run_in_thread(writer.end)
            await receiver.has(1)
        (seen,) = receiver.seen
        headers, origin = dict(seen.headers), receiver.url("")
        mine = ring().verifiers(Audience(CHARLIE.tenant, origin, "c-1"))
        assert verify(mine, headers, seen.body, time.time())
        for tenant in ("", "another"):
            theirs = ring().verifiers(Audience(tenant, origin, "c-1"))
            with pytest.raises(SignatureMismatch):
                verify(theirs, headers, seen.body, time.time())

    async def test_that_was_written_while_nobody_sent_is_told_later(self, receiver: Inbox) -> None:
        writer = await pen()
        await register(receiver.url())
        await story(writer)
        async with delivering():
            await settled(3)
        assert receiver.said == ["working", "one two", "completed"]

    async def test_ends_with_a_webhook_nobody_looks_at(self, receiver: Inbox) -> None:
        writer = await pen()
        await register(receiver.url())
        async with delivering():
            await story(writer)
            await until(lambda: idle())
        config = await row()
        assert (config.cursor, config.token, config.due_at) == (config.task.last_event, "", None)
        assert config.receiver.delivered == 3


async def swept(deliverer: Deliverer) -> None:
    """Wait until it has looked at everything once more."""
    for _ in range(2):
        deliverer.ready.clear()
        deliverer.wake()
        await deliverer.ready.wait()


async def paused() -> bool:
    return (await row()).receiver.paused_until is not None


async def waiting() -> list[Delivery]:
    """Deliveries that were refused and wait for their time."""
    return await told(next_at__isnull=False)


async def idle(id_: str = "c-1") -> bool:
    return not (await row(id_)).active


class TestOrder:
    """One after the other, whatever becomes of each."""

    async def test_a_refused_one_holds_up_those_after_it(self, receiver: Inbox) -> None:
        receiver.answers = [answer("500 X")] * 3
        writer = await pen()
        await register(receiver.url())
        async with delivering():
            await story(writer)
            rows = await settled(3)
        assert receiver.said == ["working"] * 4 + ["one two", "completed"]
        assert [row.attempts for row in rows] == [4, 1, 1]
        assert len({*receiver.ids}) == 3

    @pytest.mark.django_db(transaction=True)
    async def test_many_deliverers_share_the_work_and_keep_it(self, receiver: Inbox) -> None:
        writers = [await pen(f"task-{n}") for n in range(20)]
        for n in range(20):
            await register(receiver.url(f"/{n}"), f"task-{n}", f"c-{n}")
        async with delivering(), delivering(), delivering():
            for writer in writers:
                await story(writer)
            await settled(60)
        assert len(receiver.seen) == len({*receiver.ids}) == 60
        for n in range(20):
            mine = [seen for seen in receiver.seen if seen.path == f"/{n}"]
            assert Inbox.words(mine) == ["working", "one two", "completed"]

    async def test_each_attempt_of_one_has_the_same_body(self, receiver: Inbox) -> None:
        receiver.answers = [answer("503 X"), b""]
        writer = await pen()
        await register(receiver.url(), dialect="v03")
        await run_in_thread(writer.end)
        async with delivering():
            await settled(1)
        assert len({seen.body for seen in receiver.seen}) == 1
        assert len(receiver.seen) == 3


class TestARefusal:
    """What follows from what a receiver says."""

    async def test_is_kept_with_what_was_said(self, receiver: Inbox) -> None:
        receiver.answers = [answer("500 X", "Connection: close", body=b"broken"), b""]
        writer = await pen()
        await register(receiver.url())
        await run_in_thread(writer.state, WORKING)
        async with delivering():
            (row,) = await settled(1)
        tries = await run_in_thread(lambda: list(row.tries.all()))
        assert [(each.number, each.status, each.fault) for each in tries] == [
            (1, 500, "status"),
            (2, None, "closed"),
            (3, 200, ""),
        ]
        assert tries[0].excerpt == "broken"

    async def test_is_final_after_the_last_attempt_and_the_next_goes_on(
        self, receiver: Inbox, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.A2A_WEBHOOK_TIME_SCALE = 0.00001
        # Of its days would be left four seconds, which ten attempts may take.
        monkeypatch.setattr(breaker, "DEFAULT", replace(breaker.DEFAULT, patience=1e9))
        receiver.answers = [answer("404 X")] * 10
        writer = await pen()
        await register(receiver.url())
        async with delivering():
            await story(writer)
            rows = await settled(3)
        assert [row.status for row in rows] == ["dead", "delivered", "delivered"]
        assert rows[0].attempts == 10
        assert rows[0].reason == "10 attempts; last: answered 404"

    async def test_with_a_time_is_not_tried_before(
        self, receiver: Inbox, settings: Settings
    ) -> None:
        settings.A2A_WEBHOOK_TIME_SCALE = 1.0
        receiver.answers = [answer("503 X", "Retry-After: 3600")]
        writer = await pen()
        await register(receiver.url())
        async with delivering():
            await run_in_thread(writer.state, WORKING)
            await until(lambda: paused())
        (waits,) = await told()
        assert waits.next_at is not None
        assert 3500 < (waits.next_at - timezone.now()).total_seconds() <= 3600

    async def test_that_it_has_too_much_to_do_spares_the_whole_receiver(
        self, receiver: Inbox, settings: Settings
    ) -> None:
        settings.A2A_WEBHOOK_TIME_SCALE = 1.0
        receiver.answers = [answer("429 X", "Retry-After: 3600")]
        writer, other = await pen(), await pen("task-2")
        await register(receiver.url("/hook?for=1"))
        await register(receiver.url("/hook?for=2"), "task-2", "c-2")
        async with delivering() as deliverer:
            await run_in_thread(writer.state, WORKING)
            await until(lambda: paused())
            await run_in_thread(other.state, WORKING)
            await swept(deliverer)
        assert len(receiver.seen) == 1

    async def test_of_410_ends_the_webhook_and_buries_the_rest(self, receiver: Inbox) -> None:
        receiver.answers = [OK, answer("410 Gone")]
        writer = await pen()
        await register(receiver.url())
        async with delivering():
            await story(writer)
            rows = await settled(3)
        assert [row.status for row in rows] == ["delivered", "dead", "dead"]
        assert [row.attempts for row in rows] == [1, 1, 0]
        assert rows[2].reason == "the receiver is gone (410)"
        assert receiver.said == ["working", "one two"]
        assert (await row()).disabled_reason == "the receiver is gone (410)"
        known = await run_in_thread(Receiver.objects.get)
        assert (known.delivered, known.failed) == (1, 1)
        assert known.last_success_at and known.last_failure_at
        assert known.last_success_at < known.last_failure_at
        assert receiver_health.describe_health(known).word == "gone"

    async def test_of_410_ends_no_other_webhook_there(self, receiver: Inbox) -> None:
        receiver.answers = [answer("410 Gone")]
        writer, other = await pen(), await pen("task-2")
        await register(receiver.url("/hook?for=1"))
        await register(receiver.url("/hook?for=2"), "task-2", "c-2")
        async with delivering():
            await run_in_thread(writer.state, WORKING)
            await settled(1)
            await run_in_thread(other.state, WORKING)
            rows = await settled(2)
        assert [row.status for row in rows] == ["dead", "delivered"]


class TestReplays:
    """What an operator has sent again."""

    async def test_send_the_same_again_under_the_same_id(self, receiver: Inbox) -> None:
        writer = await pen()
        await register(receiver.url())
        async with delivering():
            await story(writer)
            rows = await settled(3)
            await until(lambda: idle())
            assert await run_in_thread(replays.replay, [rows[1].pk]) == 1
            await receiver.has(4)
            again = await settled(3)
        assert receiver.said[3] == "one two"
        assert receiver.ids[3] == receiver.ids[1]
        assert receiver.seen[3].body == receiver.seen[1].body
        assert [row.replays for row in again] == [0, 1, 0]
        tries = await run_in_thread(lambda: list(again[1].tries.values_list("number", "trigger")))
        assert tries == [(1, "schedule"), (1, "operator")]
        config = await row()
        assert config.cursor == config.task.last_event

    async def test_begin_with_the_oldest(self, receiver: Inbox) -> None:
        writer = await pen()
        await register(receiver.url())
        async with delivering():
            await story(writer)
            rows = await settled(3)
            assert await run_in_thread(replays.replay, [row.pk for row in reversed(rows)]) == 3
            await receiver.has(6)
            await settled(3)
        assert receiver.ids[3:] == receiver.ids[:3]

    async def test_of_a_time_are_of_the_dead_only(self, receiver: Inbox) -> None:
        receiver.answers = [OK, answer("410 Gone")]
        begun = timezone.now()
        writer = await pen()
        await register(receiver.url())
        async with delivering():
            await story(writer)
            await settled(3)
            key = (await row()).pk
            until_now = functools.partial(DeliverySelection, since=begun, until=timezone.now())
            assert await run_in_thread(replay, until_now(agent="other")) == 0
            assert await run_in_thread(switches.enable_config, key)
            assert await run_in_thread(replay, until_now(config=key)) == 2
            await receiver.has(4)
            rows = await settled(3)
        assert [row.status for row in rows] == ["delivered"] * 3
        assert receiver.said == ["working", "one two", "one two", "completed"]
        assert await run_in_thread(replay, until_now(config=key)) == 0
        none = DeliverySelection(since=begun, until=begun, only_dead=False)
        assert await run_in_thread(replay, none) == 0

    async def test_that_cannot_wait_are_tried_at_once(
        self, receiver: Inbox, settings: Settings
    ) -> None:
        settings.A2A_WEBHOOK_TIME_SCALE = 1.0
        receiver.answers = [answer("500 X")]
        writer = await pen()
        await register(receiver.url())
        async with delivering():
            await run_in_thread(writer.state, WORKING)
            (waits,) = await until(lambda: waiting())
            assert await run_in_thread(replays.retry_now, waits.pk)
            (done,) = await settled(1)
        assert (done.status, done.attempts) == ("delivered", 2)
        assert not await run_in_thread(replays.retry_now, done.pk)

    async def test_of_a_webhook_that_was_taken_away_are_none(self, receiver: Inbox) -> None:
        writer = await pen()
        await register(receiver.url())
        await run_in_thread(writer.state, WORKING)
        async with delivering():
            (done,) = await settled(1)
        await run_in_thread(configs.delete, ALICE, "task-1", "c-1")
        assert await run_in_thread(replays.replay, [done.pk]) == 0


class TestASwitchedOffReceiver:
    """Nothing is sent there; all of it is accounted for."""

    async def test_gets_nothing_and_what_comes_up_is_dead(self, receiver: Inbox) -> None:
        writer = await pen()
        await register(receiver.url())
        key = (await row()).receiver_id
        assert await run_in_thread(switches.disable, key, "they asked for it")
        assert not await run_in_thread(switches.disable, key, "again")
        async with delivering():
            await story(writer)
            rows = await settled(3)
            assert [(row.status, row.reason, row.attempts) for row in rows] == [
                ("dead", "they asked for it", 0)
            ] * 3
            assert receiver.seen == []
            assert await run_in_thread(switches.enable, key)
            assert await run_in_thread(replays.replay, [row.pk for row in rows]) == 3
            await settled(3, status="delivered")
        assert receiver.said == ["working", "one two", "completed"]
        assert not await run_in_thread(switches.enable, key)

    async def test_is_one_that_failed_for_days(self, receiver: Inbox, settings: Settings) -> None:
        settings.A2A_WEBHOOK_TIME_SCALE = 0.000001  # five days are half a second

        async def late(seen: Seen) -> bytes:
            if len(receiver.seen) > 12:
                await asyncio.sleep(0.5)
            return answer("500 X")

        receiver.answers = [late] * 1000
        writer = await pen()
        await register(receiver.url())
        async with delivering():
            for n in range(10):
                await run_in_thread(writer.state, WORKING, str(n))
            await run_in_thread(writer.end)
            await settled(11)
        found = (await row()).receiver
        assert found.disabled_at is not None
        assert "no success for" in found.disabled_reason
        rows = await told()
        assert [row.reason for row in rows if row.attempts == 0] != []


async def given_up(receiver: Inbox, writer: Pen) -> Delivery:
    """What is dead because its receiver had failed for days, and failed once more."""
    days = timezone.now().timestamp() - 6 * 86_400
    failing = write(Breaker(failing_since=days, in_a_row=9)).decode()
    await run_in_thread(Receiver.objects.update, breaker=failing)
    receiver.answers = [answer("500 X")]
    await run_in_thread(writer.state, WORKING)
    (dead,) = await settled(1)
    assert dead.reason.startswith("no success for 6.0 days")
    return dead


class TestAReceiverThatWasGivenUp:
    """Whoever sends something again wants it to be tried."""

    async def test_is_sent_what_is_replayed_and_is_trusted_again(self, receiver: Inbox) -> None:
        writer = await pen()
        await register(receiver.url())
        async with delivering():
            dead = await given_up(receiver, writer)
            assert await run_in_thread(replays.replay, [dead.pk]) == 1
            await receiver.has(2)
            (row_now,) = await settled(1)
            assert (row_now.status, row_now.attempts) == ("delivered", 1)
            await run_in_thread(writer.end)
            rows = await settled(2)
        assert [one.status for one in rows] == ["delivered"] * 2
        found = (await row()).receiver
        assert (found.disabled_at, found.disabled_reason) == (None, "")
        assert receivers.read(found).failing_since is None

    async def test_is_given_up_again_after_ten_more_failures(
        self, receiver: Inbox, settings: Settings
    ) -> None:
        settings.A2A_WEBHOOK_TIME_SCALE = 0.00001
        writer = await pen()
        await register(receiver.url())
        async with delivering():
            dead = await given_up(receiver, writer)
            receiver.answers = [answer("503 X")] * 100
            assert await run_in_thread(replays.replay, [dead.pk]) == 1
            await until(lambda: given_up_again())
            (row_now,) = await settled(1)
        assert (row_now.status, row_now.attempts) == ("dead", 10)
        assert len(receiver.seen) == 11

    async def test_is_sent_what_is_tried_now(self, receiver: Inbox) -> None:
        """It waits, because nobody who sends has looked since its receiver was given up."""
        writer = await pen()
        await register(receiver.url())
        async with delivering():
            dead = await given_up(receiver, writer)
        pending = Delivery.objects.filter(pk=dead.pk)
        await run_in_thread(pending.update, status="pending", settled_at=None)
        assert await run_in_thread(replays.retry_now, dead.pk)
        async with delivering():
            (row_now,) = await settled(1)
        assert row_now.status == "delivered"

    async def test_and_was_then_switched_off_by_somebody_is_sent_nothing(
        self, receiver: Inbox
    ) -> None:
        writer = await pen()
        await register(receiver.url())
        async with delivering():
            dead = await given_up(receiver, writer)
            key = (await row()).receiver_id
            await run_in_thread(switches.enable, key)
            await run_in_thread(switches.disable, key, "they asked for it")
            assert await run_in_thread(replays.replay, [dead.pk]) == 0
            assert not await run_in_thread(replays.retry_now, dead.pk)
            await run_in_thread(writer.end)
            rows = await settled(2)
        assert [one.status for one in rows] == ["dead"] * 2
        assert [one.replays for one in rows] == [0, 0]
        assert len(receiver.seen) == 1

    async def test_by_its_own_word_is_sent_what_is_replayed(self, receiver: Inbox) -> None:
        """410: the webhook is disabled. Whoever said that may have been wrong."""
        receiver.answers = [answer("410 Gone")]
        writer = await pen()
        await register(receiver.url())
        async with delivering():
            await run_in_thread(writer.state, WORKING)
            (dead,) = await settled(1)
            assert await run_in_thread(replays.replay, [dead.pk]) == 1
            await receiver.has(2)
            (row_now,) = await settled(1)
            await run_in_thread(writer.end)
            rows = await settled(2)
        assert row_now.status == "delivered"
        assert [one.status for one in rows] == ["delivered"] * 2
        assert (await row()).disabled_reason == ""


async def given_up_again() -> bool:
    """Is the receiver disabled?"""
    return (await row()).receiver.disabled_at is not None


class TestABreaker:
    """A receiver that is down is asked now and then by one attempt, and then has all its due."""

    async def test_opens_probes_and_closes(self, receiver: Inbox, settings: Settings) -> None:
        settings.A2A_WEBHOOK_TIME_SCALE = 0.002
        receiver.answers = [answer("500 X")] * 14
        for n in range(30):
            await register_new(receiver, n)
        async with delivering():
            rows = await settled(30)
        assert {row.status for row in rows} == {"delivered"}
        assert receiver.most <= 16


async def register_new(receiver: Inbox, n: int, path: str = "/hook") -> None:
    """A task that has ended, of which a receiver has not been told."""
    writer = await pen(f"task-{n}")
    await register(receiver.url(path), f"task-{n}", f"c-{n}")
    await run_in_thread(writer.end)


class TestALease:
    """Whoever lost it writes nothing."""

    async def test_that_was_lost_is_fenced(self, receiver: Inbox) -> None:
        answering = asyncio.Event()

        async def late(seen: Seen) -> bytes:
            await answering.wait()
            return answer("500 X")

        receiver.answers = [late]
        writer = await pen()
        await register(receiver.url())
        await run_in_thread(writer.state, WORKING)
        async with delivering():
            await receiver.has(1)
            await run_in_thread(expire)
            async with delivering():
                (done,) = await settled(1)
                answering.set()
                await until(lambda: receiver.open == 0)
            assert (done.status, done.attempts) == ("delivered", 1)
        (row,) = await told()
        assert (row.status, row.attempts) == ("delivered", 1)
        assert len({*receiver.ids}) == 1
        assert await run_in_thread(row.tries.count) == 1

    async def test_that_ended_while_the_process_was_frozen_is_not_used(
        self, receiver: Inbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(delivery, "LEASE_MARGIN", -100.0)
        writer = await pen()
        await register(receiver.url())
        await run_in_thread(writer.state, WORKING)
        async with delivering() as deliverer:
            await swept(deliverer)
            await until(lambda: deliverer.sending == 0)
        assert receiver.seen == []
        assert [row.attempts for row in await told()] == [0]


def expire() -> None:
    """Let all leases end."""
    PushConfig.objects.exclude(token="").update(lease_until=Now() - datetime.timedelta(seconds=1))


class TestWithoutHints:
    """Law 1: only slower."""

    async def test_all_arrives(self, receiver: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pubsub, "publish", lambda hint: None)
        writer = await pen()
        await register(receiver.url())
        async with delivering():
            await story(writer)
            await settled(3)
        assert receiver.said == ["working", "one two", "completed"]

    async def test_more_webhooks_than_one_look_reads(
        self, receiver: Inbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pubsub, "publish", lambda hint: None)
        monkeypatch.setattr(claims, "SLICE", 3)
        for n in range(10):
            await register_new(receiver, n)
        async with delivering():
            await settled(10)
        assert len(receiver.seen) == 10


class TestAChangedWebhook:
    """What becomes of what is pending."""

    async def test_that_is_taken_away_while_it_is_told_ends_quietly(self, receiver: Inbox) -> None:
        answering = asyncio.Event()

        async def late(seen: Seen) -> bytes:
            await answering.wait()
            return OK

        receiver.answers = [late]
        writer = await pen()
        await register(receiver.url())
        await run_in_thread(writer.state, WORKING)
        async with delivering() as deliverer:
            await receiver.has(1)
            await run_in_thread(configs.delete, ALICE, "task-1", "c-1")
            answering.set()
            await until(lambda: deliverer.sending == 0)
        (row,) = await told()
        assert (row.status, row.config_id, row.reason) == (
            "cancelled",
            None,
            "the webhook was deleted",
        )

    async def test_that_is_replaced_has_what_is_pending_sent_there(self, receiver: Inbox) -> None:
        receiver.answers = [answer("500 X")] * 1000
        writer = await pen()
        await register(receiver.url("/old"), token="old")
        async with inbox() as other, delivering():
            await run_in_thread(writer.state, WORKING)
            await receiver.has(1)
            await register(other.url("/new"), token="new")
            (done,) = await settled(1)
            assert done.status == "delivered"
            assert other.ids[-1] == receiver.ids[0]
            assert other.seen[-1].header("x-a2a-notification-token") == ["new"]
            assert done.receiver_id == (await row()).receiver_id

    async def test_that_is_registered_again_is_no_longer_disabled(self, receiver: Inbox) -> None:
        receiver.answers = [answer("410 Gone")]
        writer = await pen()
        await register(receiver.url())
        async with delivering():
            await run_in_thread(writer.state, WORKING)
            await settled(1)
            await register(receiver.url())
            await run_in_thread(writer.end)
            rows = await settled(2)
        assert [row.status for row in rows] == ["dead", "delivered"]

    async def test_whose_secrets_nobody_can_open_waits(
        self, receiver: Inbox, settings: Settings
    ) -> None:
        settings.A2A_WEBHOOK_TIME_SCALE = 1.0
        writer = await pen()
        await register(receiver.url(), token="t")
        await run_in_thread(writer.state, WORKING)
        key, settings.SECRET_KEY = settings.SECRET_KEY, "another" * 10
        async with delivering():
            (waits,) = await until(lambda: waiting())
            assert waits.reason == "no key of this host opens the webhook's secrets"
            assert waits.attempts == (await row()).receiver.failed == 0
            settings.SECRET_KEY = key
            await run_in_thread(replays.retry_now, waits.pk)
            await settled(1, status="delivered")


class TestHints:
    """Without waiting for the sweep."""

    @pytest.fixture(autouse=True)
    def nobody_sweeps(self, settings: Settings) -> None:
        """But at the start."""
        settings.A2A_POLL_SECONDS = 1000

    async def test_tell_that_a_receiver_was_enabled(self, receiver: Inbox) -> None:
        writer = await pen()
        await register(receiver.url())
        receivers = Receiver.objects.all()
        await run_in_thread(receivers.update, paused_until=Now() + datetime.timedelta(hours=1))
        async with delivering() as deliverer:
            await run_in_thread(writer.state, WORKING)
            await deliverer.ready.wait()
            assert await run_in_thread(switches.enable, (await row()).receiver_id)
            await settled(1)

    async def test_tell_that_a_webhook_was_replaced(self, receiver: Inbox) -> None:
        writer = await pen()
        await register("http://127.0.0.1:9/away")
        await run_in_thread(
            Receiver.objects.update, paused_until=Now() + datetime.timedelta(hours=1)
        )
        async with delivering() as deliverer:
            await run_in_thread(writer.state, WORKING)
            await deliverer.ready.wait()
            await register(receiver.url())
            await settled(1)
        assert receiver.said == ["working"]

    async def test_may_be_more_than_a_statement_has_room_for(
        self, receiver: Inbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[int] = []
        real = claims.due_of

        def noted(tasks: Collection[int]) -> list[Candidate]:
            asked.append(len(tasks))
            return real(tasks)

        monkeypatch.setattr(claims, "due_of", noted)
        writer = await pen()
        await register(receiver.url())
        async with delivering() as deliverer:
            await deliverer.ready.wait()
            for n in range(5_000):
                deliverer._on_hint(pubsub.Committed(10_000_000 + n, 1))
            await run_in_thread(writer.state, WORKING)
            await settled(1)
        assert max(asked) == claims.SLICE
        assert sum(asked) > 5_000


class TestTheHostItself:
    """What goes wrong on this side is not held against anybody."""

    async def test_with_a_mistake_uses_no_attempt_and_sends_once_it_is_mended(
        self, receiver: Inbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def mistaken(*_: object, **__: object) -> None:
            raise ZeroDivisionError

        writer = await pen()
        await register(receiver.url())
        with monkeypatch.context() as patch:
            patch.setattr(delivery, "prepare", mistaken)
            await run_in_thread(writer.state, WORKING)
            async with delivering():
                (waits,) = await until(lambda: waiting())
        assert (waits.attempts, waits.reason) == (0, "it could not be sent: ZeroDivisionError")
        async with delivering():
            (done,) = await settled(1)
        assert (done.status, done.attempts) == ("delivered", 1)
        assert (await row()).receiver.failed == 0

    async def test_with_a_proxy_that_is_away_opens_no_breaker_and_says_so(
        self, settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        trouble = "a fault of this host"
        monkeypatch.setattr(delivery, "_own", ThrottledLogger(delivery.logger, trouble))
        settings.A2A_WEBHOOK_TIME_SCALE = 0.0001  # it is tried each 6 ms
        writer = await pen()
        with nobody() as port:
            settings.A2A_WEBHOOK_PROXY = f"http://127.0.0.1:{port}"
            await register("https://hooks.example.com/a2a")
            await run_in_thread(writer.state, WORKING)
            async with delivering() as deliverer:
                await until(lambda: waiting())
                for _ in range(12):
                    await swept(deliverer)
        config = await row()
        (waits,) = await told()
        assert (waits.attempts, config.receiver.probe_at, config.receiver.breaker) == (
            0,
            None,
            "{}",
        )
        assert trouble in caplog.text


class TestTheBeginning:
    """From where a webhook is told."""

    @pytest.mark.parametrize("dialect", ["dr", "v10"])
    async def test_is_the_task_as_it_is_when_it_was_registered(
        self, receiver: Inbox, dialect: str
    ) -> None:
        writer = await pen()
        await run_in_thread(writer.state, WORKING)
        await run_in_thread(writer.begin, "a", "half ")
        await register(receiver.url(), dialect=dialect)
        async with delivering():
            await run_in_thread(writer.close, "a", "a text")
            await run_in_thread(writer.end)
            await settled(3)
        first = json.loads(receiver.seen[0].body)["task"]
        assert first["status"]["state"].lower().endswith("working")
        assert [p["text"] for one in first["artifacts"] for p in one["parts"]] == ["half "]
        assert receiver.said[1:] == ["a text", "completed"]

    @pytest.mark.parametrize("dialect", sorted(DIALECTS))
    async def test_at_an_ended_task_is_its_end(self, receiver: Inbox, dialect: str) -> None:
        writer = await pen()
        await run_in_thread(writer.end)
        await register(receiver.url(), dialect=dialect)
        async with delivering() as deliverer:
            await settled(1)
            await swept(deliverer)
        assert receiver.said == ["completed"]
        await until(idle)
        if DIALECTS[dialect].pushes_events:
            assert json.loads(receiver.seen[0].body).keys() == {"task"}

    @pytest.mark.parametrize("dialect", sorted(DIALECTS))
    async def test_at_a_task_that_waits_is_its_question(
        self, receiver: Inbox, dialect: str
    ) -> None:
        writer = await pen()
        await run_in_thread(writer.state, TaskState.INPUT_REQUIRED, "Which one?")
        await register(receiver.url(), dialect=dialect)
        async with delivering():
            await settled(1)
        assert b"Which one?" in receiver.seen[0].body

    async def test_of_a_large_task_is_the_task_without_its_content(
        self, receiver: Inbox, settings: Settings
    ) -> None:
        settings.A2A_WEBHOOK_MAX_BYTES = 2000
        writer = await pen()
        await run_in_thread(writer.begin, "a", "x" * 3000)
        await register(receiver.url())
        async with delivering():
            await settled(1)
        body = json.loads(receiver.seen[0].body)["task"]
        assert OMITTED in body["metadata"]
        assert "artifacts" not in body

    async def test_is_one_body_for_two_that_come_at_once_and_the_event_of_an_earlier_one(
        self, receiver: Inbox
    ) -> None:
        """They are stored once, and not taken for each other."""
        writer = await pen()
        await register(receiver.url("/early"), id_="c-1")
        await run_in_thread(writer.state, WORKING, "x" * 100_000)
        await register(receiver.url("/late"), id_="c-2")
        await register(receiver.url("/late"), id_="c-3")
        async with delivering():
            await settled(3)
        came = sorted((seen.path, *json.loads(seen.body).keys()) for seen in receiver.seen)
        assert came == [("/early", "statusUpdate"), ("/late", "task"), ("/late", "task")]

    async def test_of_a_direct_message_is_never(self, receiver: Inbox) -> None:
        writer = await pen(is_task=False)
        inline = functools.partial(configs.put, config=whole(url=receiver.url()))
        await run_in_thread(inline, writer.run.task)
        await run_in_thread(writer.end)
        await run_in_thread(lambda: Task.objects.update(is_task=False))
        async with delivering():
            await until(lambda: idle())
        assert await told() == []

    @pytest.mark.parametrize("ends", [False, True])
    async def test_at_another_url_is_the_task_as_it_is(self, receiver: Inbox, ends: bool) -> None:
        """The former URL has had what came before."""
        writer = await pen()
        await register(receiver.url("/old"))
        async with delivering() as deliverer:
            await run_in_thread(writer.state, WORKING)
            await settled(1)
            await run_in_thread(writer.begin, "a", "half ")
            if ends:
                await run_in_thread(writer.end)
                await settled(3)
            await swept(deliverer)
            await register(receiver.url("/new"))
            if ends:
                await settled(4)
                await register(receiver.url("/old"))
                await settled(5)
                await register(receiver.url("/new"))  # which has had it
            else:
                await run_in_thread(writer.close, "a", "a text")
                await run_in_thread(writer.end)
            await swept(deliverer)
            await until(lambda: idle())
        first, *rest = [json.loads(seen.body) for seen in receiver.seen if seen.path == "/new"]
        (artifact,) = first["task"]["artifacts"]
        assert [part["text"] for part in artifact["parts"]] == ["half "]
        assert [next(iter(one)) for one in rest] == (
            [] if ends else ["artifactUpdate", "statusUpdate"]
        )

    async def test_of_a_webhook_that_is_registered_again_is_nothing_new(
        self, receiver: Inbox
    ) -> None:
        writer = await pen()
        await register(receiver.url(), token="old")
        async with delivering() as deliverer:
            await run_in_thread(writer.end)
            await settled(1)
            await register(receiver.url(), token="new")
            await swept(deliverer)
            await until(lambda: idle())
        assert len(receiver.seen) == 1

    async def test_waits_until_it_is_known_to_be_a_task(self, receiver: Inbox) -> None:
        writer = await pen(is_task=False)
        inline = functools.partial(configs.put, config=whole(url=receiver.url()))
        await run_in_thread(inline, writer.run.task)
        async with delivering() as deliverer:
            await run_in_thread(writer.state, WORKING)
            await swept(deliverer)
            assert await told() == []
            await run_in_thread(tasks.reveal, writer.run.task)
            await settled(1)
        assert receiver.said == ["working"]


class TestSuccession:
    """A task that begins anew under the id of an ended one."""

    async def test_what_was_not_told_of_the_old_one_comes_first(self, receiver: Inbox) -> None:
        old = await pen()
        await register(receiver.url())
        await story(old)
        new = await pen("task-2")
        await run_in_thread(configs.move, old.run.task, new.run.task)
        await run_in_thread(new.state, WORKING)
        async with delivering():
            await settled(4)
        assert receiver.said == ["working", "one two", "completed", "working"]

    async def test_what_is_being_sent_is_not_sent_again(self, receiver: Inbox) -> None:
        going = asyncio.Event()

        async def late(seen: Seen) -> bytes:
            await going.wait()
            return OK

        receiver.answers = [late]
        old = await pen()
        await register(receiver.url())
        await story(old)
        async with delivering():
            await receiver.has(1)
            new = await pen("task-2")
            await run_in_thread(configs.move, old.run.task, new.run.task)
            going.set()
            await run_in_thread(new.state, WORKING)
            await settled(4)
        assert receiver.said == ["working", "one two", "completed", "working"]

    async def test_its_own_webhook_takes_over_what_is_pending(self, receiver: Inbox) -> None:
        old = await pen()
        await register(receiver.url("/old"))
        await run_in_thread(old.end)
        new = await pen("task-2")
        await register(receiver.url("/new"), "task-2")
        await run_in_thread(configs.move, old.run.task, new.run.task)
        async with delivering():
            await settled(1)
        assert [seen.path for seen in receiver.seen] == ["/new"]


class TestWhatCannotBeTold:
    """An event of which nothing can be made, by a mistake of ours or in the database."""

    async def test_hinders_no_other_and_what_came_before_is_recorded(self, receiver: Inbox) -> None:
        bad, good = await pen(), await pen("task-2")
        await register(receiver.url("/bad"))
        await register(receiver.url("/good"), "task-2", "c-2")
        for writer in (bad, good):
            await story(writer)
        spoilt = Event.objects.filter(task=bad.run.task, kind=EventKind.ARTIFACT)
        await run_in_thread(spoilt.update, body="{no JSON")
        async with delivering():
            rows = await settled(4)
        assert [seen.path for seen in receiver.seen].count("/bad") == 1
        assert [row.status for row in rows] == ["delivered"] * 4
        assert not await run_in_thread(held_ones)


#: Writes a delivery of this id.
WRITE = """
insert into a2a_push_delivery (task_id, receiver_id, webhook_id, number, through, dialect, content_type,
  body, status, attempts, reason, trigger, replays)
values (%s, %s, %s, 1, 1, 'v10', '', '', 'pending', 0, '', 'schedule', 0)
"""


@pytest.mark.backend("stack")
@pytest.mark.django_db(transaction=True)
class TestAStatementThatTakesTooLong:
    """What the host's own deadline ends is the fault of one webhook, and the database is not away."""

    @staticmethod
    @contextmanager
    def stuck(id_: str) -> Iterator[None]:
        """The delivery that comes next for a webhook is being written by a transaction that does not end."""
        config = PushConfig.objects.select_related("task").get(public_id=id_)
        name = webhook_id(config.pk, config.task_id, config.task.public_id, config.task.last_event)
        with psycopg.connect(**connection.get_connection_params()) as other:
            other.execute(WRITE, [config.task_id, config.receiver_id, name])
            yield
            other.rollback()

    async def test_has_its_webhook_left_alone_and_hinders_no_other(self, receiver: Inbox) -> None:
        for n in range(3):
            await register_new(receiver, n, f"/{n}")
        stuck = self.stuck("c-1")
        await run_in_thread(stuck.__enter__)
        async with delivering() as deliverer:
            await settled(2)
            assert {seen.path for seen in receiver.seen} == {"/0", "/2"}
            await until(lambda: rests("c-1"))
            await run_in_thread(stuck.__exit__, None, None, None)
            await run_in_thread(PushConfig.objects.update, due_at=Now())
            deliverer.wake()
            await settled(3)
        assert receiver.seen[-1].path == "/1"

    async def test_after_an_answer_has_the_answer_kept(self, receiver: Inbox) -> None:
        writer = await pen()
        await register(receiver.url())
        await run_in_thread(writer.state, WORKING)
        await run_in_thread(writer.end)
        stuck = self.stuck("c-1")
        await run_in_thread(stuck.__enter__)
        async with delivering():
            (first,) = await settled(1, number=2)
            assert first.status == "delivered"
            await run_in_thread(stuck.__exit__, None, None, None)
        assert receiver.said[0] == "working"


@pytest.mark.backend("stack")
@pytest.mark.django_db(transaction=True)
class TestALockedReceiver:
    async def test_is_sent_to_once_it_is_free_and_hinders_no_other(self, receiver: Inbox) -> None:
        for n in range(2):
            await register_new(receiver, n, f"/{n}")
        locked = Receiver.objects.filter(address__endswith="/1")
        await run_in_thread(locked.update, probe_at=Now())
        with psycopg.connect(**connection.get_connection_params()) as other:
            lock = "select 1 from a2a_push_receiver where probe_at is not null for no key update"
            other.execute(lock)
            async with delivering():
                await receiver.has(1)
                other.rollback()
                await settled(2)
        assert [seen.path for seen in receiver.seen] == ["/0", "/1"]


async def rests(id_: str) -> bool:
    due = (await row(id_)).due_at
    return due is not None and due > timezone.now()


class TestADrain:
    """A process that ends."""

    async def test_lets_a_request_on_its_way_end_and_takes_no_more(self, receiver: Inbox) -> None:
        going = asyncio.Event()

        async def late(seen: Seen) -> bytes:
            await going.wait()
            return OK

        receiver.answers = [late]
        writer = await pen()
        await register(receiver.url())
        await story(writer)
        async with delivering() as deliverer:
            await receiver.has(1)
            draining = asyncio.create_task(deliverer.drain(20))
            await asyncio.sleep(0)
            going.set()
            await draining
        assert receiver.said == ["working"]
        (row,) = await told()
        assert row.status == "delivered"
        assert not await run_in_thread(held_ones)

    async def test_gives_back_what_does_not_end_for_others_to_send(self, receiver: Inbox) -> None:
        receiver.answers = [receiver.never]
        writer = await pen()
        await register(receiver.url())
        await run_in_thread(writer.state, WORKING)
        async with delivering():
            await receiver.has(1)
        assert not await run_in_thread(held_ones)
        async with delivering():
            await settled(1)
        assert receiver.ids[0] == receiver.ids[1]


def held_ones() -> list[PushConfig]:
    return list(PushConfig.objects.exclude(token=""))


class TestSlots:
    """Nobody takes what belongs to others."""

    async def test_a_receiver_that_hangs_has_one_and_others_go_on(
        self, receiver: Inbox, settings: Settings
    ) -> None:
        settings.A2A_WEBHOOK_SECONDS = 100  # or it is given up before the others have all
        receiver.answers = [receiver.never] * 100
        for n in range(10):
            await register_new(receiver, n)
        async with inbox() as other, delivering(slots=4):
            await receiver.has(1)
            for n in range(10, 30):
                await register_new(other, n)
            await other.has(20)
            assert len(receiver.seen) == 1

    async def test_a_receiver_with_more_that_is_due_than_is_remembered_gets_all_of_it(
        self, receiver: Inbox, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(receiver_queue, "MAX_WELL", 3)
        monkeypatch.setattr(receiver_queue, "MAX_DOUBTFUL", 1)
        settings.A2A_POLL_SECONDS = 1000
        for n in range(12):
            await register_new(receiver, n)
        async with delivering():
            await settled(12)
        assert len(receiver.seen) == 12

    async def test_doubtful_receivers_leave_room_for_the_others(
        self, receiver: Inbox, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.A2A_WEBHOOK_SECONDS = 100  # or those are given up before the other one has all
        for module in (results, delivery):  # the other one is not slow because this machine is
            monkeypatch.setattr(module, "SLOW_SECONDS", 3600.0)
        async with inbox() as other:
            receiver.answers = [receiver.never] * 100
            async with delivering(slots=4):
                await register_new(other, 100)
                await settled(1)
                for n in range(10):
                    await register_new(receiver, n, f"/{n}")
                await receiver.has(2)
                for n in range(200, 210):
                    await register_new(other, n)
                await other.has(11)
                assert receiver.open == 2


class TestTheEmbeddedHost:
    """The web process sends, if it runs the agents."""

    async def test_sends_by_itself(self, receiver: Inbox, settings: Settings) -> None:
        settings.A2A_RUNS = "local"
        writer = await pen()
        await register(receiver.url())
        await startup.deliver()
        try:
            await story(writer)
            await settled(3)
        finally:
            await delivery._deliverers.pop(asyncio.get_running_loop()).drain(0)

    async def test_asks_nothing_while_there_are_no_webhooks(
        self, receiver: Inbox, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """And is told of the first one at once, without a sweep."""
        settings.A2A_POLL_SECONDS = 1000
        asked: list[Collection[int]] = []
        real = claims.due_of

        def noted(tasks: Collection[int]) -> list[Candidate]:
            asked.append(tasks)
            return real(tasks)

        monkeypatch.setattr(claims, "due_of", noted)
        writer, other = await pen(), await pen("task-2")
        async with delivering(alone=True) as deliverer:
            await deliverer.ready.wait()
            await run_in_thread(other.state, WORKING)
            await swept(deliverer)
            assert asked == []
            await register(receiver.url())
            await run_in_thread(writer.end)
            (done,) = await settled(1)
            await until(lambda: idle())
            await swept(deliverer)
            await run_in_thread(replays.replay, [done.pk])
            await receiver.has(2)
            await settled(1)
        assert asked != []

    async def test_leaves_it_to_workers_where_there_are_any(self, settings: Settings) -> None:
        settings.A2A_RUNS = "celery"
        await startup.deliver()
        assert asyncio.get_running_loop() not in delivery._deliverers


class TestTheJob:
    """Beat has what hints missed looked for."""

    async def test_makes_the_deliverer_look(
        self, receiver: Inbox, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pubsub, "publish", lambda hint: None)
        settings.A2A_POLL_SECONDS = 1000
        writer = await pen()
        await register(receiver.url())
        looked = await delivery.begin()
        try:
            await looked.wait()
            await run_in_thread(writer.end)
            jobs.sweep_webhooks()
            await settled(1)
        finally:
            await delivery._deliverers.pop(asyncio.get_running_loop()).drain(0)


class TestASlot:
    """What is scarce goes round."""

    async def test_is_given_up_to_others_by_who_has_much_to_say(
        self, receiver: Inbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A thousand notifications for one receiver are not before the first for another."""
        monkeypatch.setattr(delivery, "TURN_SECONDS", 0.0)
        for name in ("much", "little"):
            writer = await pen(name)
            await register(receiver.url(f"/{name}"), name, name)
            await story(writer)
        async with delivering(slots=1):
            await settled(6)
        paths = [seen.path for seen in receiver.seen]
        assert set(paths[:2]) == {"/much", "/little"}
        for name in ("/much", "/little"):
            mine = [seen for seen in receiver.seen if seen.path == name]
            assert Inbox.words(mine) == ["working", "one two", "completed"]


class TestLargeBodies:
    """What is large waits for room, and nothing small waits for it."""

    async def test_beyond_what_a_process_holds_let_small_ones_pass(
        self, receiver: Inbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(delivery, "MAX_BYTES", 2 * 1024 * 1024)
        release = asyncio.Event()

        async def late(seen: Seen) -> bytes:
            await release.wait()
            return OK

        receiver.answers = [late] * 12
        for n in range(12):
            await large(f"large-{n}", receiver.url(f"/{n}"))
        async with inbox() as other, delivering() as deliverer:
            await until(lambda: deliverer._large.room <= 0)
            for n in range(10):
                await register_new(other, n)
            await other.has(10)
            assert len(receiver.seen) < 12
            assert deliverer._large.bytes <= 3 * 1024 * 1024
            release.set()
            await receiver.has(12)
            await settled(22)
            await until(lambda: not deliverer.sending)
            assert deliverer._large.bytes == 0

    async def test_that_follow_each_other_are_counted_once_each(self, receiver: Inbox) -> None:
        writer = await large("task-1", receiver.url())
        for n in range(3):
            await run_in_thread(writer.state, WORKING, "x" * 100_000 + str(n))
        await run_in_thread(writer.end)
        async with delivering() as deliverer:
            await settled(5)
            await until(lambda: not deliverer.sending)
            assert deliverer._large.bytes == 0


async def large(task: str, url: str) -> Pen:
    """A task with a webhook, of which half a megabyte is to be told."""
    writer = await pen(task, context_id=f"of {task}")
    await register(url, task, f"c-{task}")
    await run_in_thread(writer.state, INPUT_REQUIRED, "x" * 250_000)
    return writer
