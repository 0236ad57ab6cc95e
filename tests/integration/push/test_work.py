"""Taking and settling in the store: one contract for both databases."""

from __future__ import annotations

import datetime
import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from a2a_push.models import Attempt, Delivery, PushConfig, Receiver
from a2a_push.retry_schedule import Disable, GiveUp, Retry, Uncounted
from a2a_push.store import claims, configs, cursor, receivers, replays, switches
from a2a_push.store.records import AttemptResult, ClaimedWebhook, WebhookLeaseLost
from a2a_push.store.results import SettledAttempt, settle
from a2a_tasks import pubsub
from a2a_tasks.caller import OwnerScope, scope_in
from a2a_tasks.protocol.lifecycle import EventKind
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.append import append
from a2a_tasks.store.backend.rows import update_each
from a2a_tasks.store.file_links import is_signed
from a2a_tasks.store.records import ArtifactRow, NewEvent
from tests.support.push.configs import registered
from tests.support.store.world import ALICE, Pen, held

pytestmark = pytest.mark.django_db
HOUR = datetime.timedelta(hours=1)


def task(name: str = "task-1", id_: str = "c-1", **about: Any) -> Pen:
    """A task with a webhook that has two events to be told of."""
    pen = Pen(held(name))
    registered(id_, task_id=name, **about)
    pen.state(TaskState.WORKING)
    pen.end()
    return pen


def take(worker: str = "here:1") -> list[ClaimedWebhook]:
    """All that is due, taken."""
    found, _ = claims.sweep(0)
    keys = [candidate.config for candidate in found]
    return claims.take(keys, worker=worker, lease_seconds=30).claimed


class TestFiles:
    @pytest.mark.parametrize(
        "scope",
        [ALICE, scope_in("acme", "user:alice", "demo", shared=True)],
        ids=["own", "shared"],
    )
    def test_a_webhook_is_told_of_a_file_by_a_url_that_the_host_would_answer(
        self, settings: Any, scope: OwnerScope
    ) -> None:
        settings.A2A_PUBLIC_URL = "https://agents.example.com"
        settings.A2A_FILE_URLS = "authenticated"
        file = "0123456789abcdef" * 2
        pen = Pen(held(scope=scope, principal="user:alice"))
        registered(scope=scope)
        body = b'{"artifact":{"artifactId":"a","parts":[{"url":"a2a-file:%s"}]}}' % file.encode()
        row = ArtifactRow(0, "a", 0, body=body.decode())
        event = NewEvent(EventKind.ARTIFACT, body.decode())
        append(pen.batch(event, artifacts=[row]))
        pen.end()
        (one,) = take()
        (part,) = json.loads(one.notification.body)["artifactUpdate"]["artifact"]["parts"]
        url = urlsplit(part["url"])
        assert part["url"].startswith(f"https://agents.example.com/agents/demo/files/{file}?")
        said = {name: value for name, (value,) in parse_qs(url.query).items()}
        assert is_signed("demo", file, **said, principal="user:alice")


def result(verdict: Any = None, **changes: Any) -> AttemptResult:
    """How an attempt ended: well, unless it is said otherwise."""
    about: dict[str, Any] = {
        "started_at": timezone.now(),
        "seconds": 0.01,
        "status": 200 if verdict is None else 500,
        "fault": "" if verdict is None else "status",
        "excerpt": "words",
        "detail": "" if verdict is None else "answered 500",
        "verdict": verdict,
        "worker": "here:1",
    }
    return AttemptResult(**{**about, **changes})


def settled(
    one: ClaimedWebhook,
    verdict: Any = None,
    *,
    stops: bool = False,
    room: int = claims.BATCH_BYTES,
    **about: Any,
) -> Any:
    """What follows from one attempt."""
    lease = None if stops else 30.0
    (following,) = settle([SettledAttempt(one, result(verdict, **about), lease, room)])
    return following


class TestTaking:
    def test_makes_the_row_before_anything_is_sent(self) -> None:
        task()
        (one,) = take()
        row = Delivery.objects.get()
        assert (row.pk, row.webhook_id, row.body.encode()) == (
            one.delivery,
            one.notification.id,
            one.notification.body,
        )
        assert (row.status, row.number, row.through) == ("pending", 2, 2)
        assert PushConfig.objects.get().cursor == 1

    def test_leaves_alone_what_is_held(self) -> None:
        task()
        assert len(take()) == 1
        assert take("there:2") == []

    def test_after_a_lease_gives_the_same_delivery_to_another(self) -> None:
        task()
        (first,) = take()
        PushConfig.objects.update(lease_until=Now() - HOUR)
        (second,) = take("there:2")
        assert second.delivery == first.delivery
        assert second.notification == first.notification
        assert second.token != first.token

    def test_after_a_lease_gives_what_was_replayed_to_another(self) -> None:
        """Its log has nothing new: what died with its holder is found all the same."""
        task()
        (one,) = take()
        assert settled(settled(one)) is None
        assert replays.replay([one.delivery]) == 1
        (first,) = take()
        PushConfig.objects.update(lease_until=Now() - HOUR)
        (second,) = take("there:2")
        assert (first.delivery, second.delivery) == (one.delivery, one.delivery)

    def test_of_what_was_given_back_is_possible_at_once(self) -> None:
        task()
        claims.give_back(take())
        assert len(take()) == 1
        assert Delivery.objects.count() == 1

    def test_finds_nothing_at_a_receiver_that_asked_to_be_left_alone(self) -> None:
        task()
        Receiver.objects.update(paused_until=Now() + HOUR)
        assert claims.sweep(0) == ([], 0)
        Receiver.objects.update(paused_until=Now() - HOUR)
        assert len(take()) == 1
        assert Receiver.objects.get().paused_until is None

    def test_of_many_at_a_half_open_receiver_gives_one(self) -> None:
        for n in range(5):
            task(f"task-{n}", f"c-{n}")
        state = '{"phase":"open","until":1.0,"openings":1}'
        Receiver.objects.update(breaker=state, probe_at=Now() - HOUR)
        (probe,) = take()
        assert probe.permit > 0
        assert take() == []
        assert receivers.read(Receiver.objects.get()).probe == probe.permit

    def test_notes_what_has_nothing_to_be_sent(self) -> None:
        pen = Pen(held())
        registered()
        PushConfig.objects.update(due_at=Now() - HOUR)
        assert take() == []
        config = PushConfig.objects.get()
        assert (config.due_at, config.active) == (None, True)
        assert pen.state(TaskState.WORKING) == 2
        assert len(take()) == 1

    def test_leaves_alone_an_artifact_that_grows_no_more_until_it_does(self) -> None:
        pen = Pen(held())
        registered()
        pen.begin("a", "one ")
        for due in (True, False):
            assert take() == []
            assert (PushConfig.objects.get().due_at is not None) is due
            PushConfig.objects.exclude(due_at=None).update(due_at=Now() - HOUR)
        assert claims.sweep(0) == ([], 0)
        pen.close("a", "two")
        (one,) = take()
        assert b'"two"' in one.notification.body

    def test_tells_how_long_what_is_due_soon_has_to_wait(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(claims, "SOON", 120.0)
        task()
        PushConfig.objects.update(due_at=Now() + datetime.timedelta(seconds=60))
        ((soon,), _) = claims.sweep(0)
        assert 0 < soon.wait < 61  # SQLite rounds the time to milliseconds
        assert claims.take([soon.config], worker="w", lease_seconds=30).claimed == []
        assert claims.due_of([PushConfig.objects.get().task_id])[0].config == soon.config


@pytest.mark.backend("stack")
def test_a_hint_of_tasks_without_webhooks_costs_one_prepared_statement() -> None:
    pens = [Pen(held(name)) for name in ("task-1", "task-2")]
    task("task-3")
    with CaptureQueriesContext(connection) as of_the_orm:
        assert claims.due_of([pen.run.task for pen in pens]) == []
    assert len(of_the_orm) == 0
    PushConfig.objects.update(active=False)
    ended = PushConfig.objects.get().task_id
    with CaptureQueriesContext(connection) as of_the_orm:
        assert claims.due_of([ended]) == []
    assert len(of_the_orm) == 0


class TestLargeEvents:
    """What is read at once has bounds in bytes; what is told is the same."""

    @staticmethod
    def told() -> list[list[str]]:
        """The texts of each notification, as they are delivered."""
        (one,) = take()
        found = []
        while one is not None:
            body = json.loads(one.notification.body)
            update = body.get("artifactUpdate")
            parts = update["artifact"]["parts"] if update else []
            found.append([part["text"] for part in parts])
            one = settled(one)
        return found

    def written(self) -> None:
        """A task whose artifact grows in three pieces."""
        pen = Pen(held())
        registered()
        pen.begin("a", "one ")
        pen.add("a", "two ")
        pen.close("a", "three")
        pen.end()

    def test_are_joined_though_a_glance_has_room_for_one(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(cursor, "GLANCE_BYTES", 1)
        self.written()
        assert self.told() == [["one ", "two ", "three"], []]

    def test_are_told_one_by_one_if_there_is_room_for_no_more(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(cursor, "GLANCE_BYTES", 1)
        monkeypatch.setattr(cursor, "PAGE_BYTES", 1)
        self.written()
        assert self.told() == [["one "], ["two "], ["three"], []]

    def test_that_are_not_told_do_not_hide_those_behind_them(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(cursor, "GLANCE_BYTES", 1)
        monkeypatch.setattr(cursor, "PAGE_BYTES", 1)
        pen = Pen(held())
        registered(dialect="v03")
        pen.begin("a", "one ")
        pen.close("a", "two")
        pen.end()
        assert self.told() == [[]]
        assert not PushConfig.objects.get().active


class TestBurying:
    """A disabled webhook's events become rows, never more than so many in a transaction."""

    @pytest.fixture(autouse=True)
    def few(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Three."""
        monkeypatch.setattr(cursor, "BATCH", 3)

    def counts(self, rounds: int) -> list[int]:
        """How many are dead after each look."""
        found = []
        for _ in range(rounds):
            assert take() == []
            found.append(Delivery.objects.filter(status="dead").count())
        return found

    def test_goes_on_until_all_of_the_log_is_accounted_for(self) -> None:
        pen = Pen(held())
        registered()
        for n in range(7):
            pen.state(TaskState.WORKING, str(n))
        PushConfig.objects.update(disabled_reason="gone")
        assert self.counts(4) == [3, 6, 7, 7]
        assert PushConfig.objects.get().cursor == 8
        assert [row.number for row in Delivery.objects.order_by("pk")] == [2, 3, 4, 5, 6, 7, 8]

    def test_goes_on_until_all_that_waited_is_accounted_for(self) -> None:
        pen = Pen(held())
        registered()
        for n in range(4):
            pen.state(TaskState.WORKING, str(n))
        pen.end()
        (one,) = take()
        while one is not None:
            one = settled(one)
        assert replays.replay(list(Delivery.objects.values_list("pk", flat=True))) == 5
        PushConfig.objects.update(disabled_reason="gone")
        assert self.counts(2) == [3, 5]
        assert not PushConfig.objects.get().active

    def test_tells_who_looks_that_there_is_more(self) -> None:
        pen = Pen(held())
        registered()
        for n in range(4):
            pen.state(TaskState.WORKING, str(n))
        PushConfig.objects.update(disabled_reason="gone")
        told: list[pubsub.Hint] = []
        with pubsub.listen(told.append):
            self.counts(1)
            assert told == [pubsub.Committed(pen.run.task, 5)]
            self.counts(1)
            assert len(told) == 1


class TestSettling:
    def test_brings_what_comes_next(self) -> None:
        task()
        (one,) = take()
        following = settled(one)
        assert isinstance(following, ClaimedWebhook)
        assert following.delivery != one.delivery
        assert PushConfig.objects.get().cursor == 2
        assert settled(following) is None
        config = PushConfig.objects.get()
        assert (config.cursor, config.active, config.token) == (3, False, "")
        assert Attempt.objects.count() == 2
        assert Receiver.objects.get().delivered == 2

    def test_lets_go_if_the_process_stops(self) -> None:
        task()
        (one,) = take()
        assert settled(one, stops=True) is None
        assert PushConfig.objects.get().token == ""
        assert len(take()) == 1

    def test_is_possible_once(self) -> None:
        task()
        (one,) = take()
        settled(one)
        assert isinstance(settled(one), WebhookLeaseLost)
        assert Attempt.objects.count() == 1
        assert Receiver.objects.get().delivered == 1

    def test_is_for_who_holds(self) -> None:
        pen = task()
        (one,) = take()
        PushConfig.objects.update(lease_until=Now() - HOUR)
        take("there:2")
        assert isinstance(settled(one), WebhookLeaseLost)
        PushConfig.objects.filter(task=pen.run.task).delete()
        assert isinstance(settled(one), WebhookLeaseLost)
        assert not Attempt.objects.exists()

    @pytest.mark.parametrize("late_first", [True, False])
    def test_beside_one_who_comes_too_late_is_for_who_holds(self, late_first: bool) -> None:
        """Two of one process, in one transaction: only one of them goes on."""
        task()
        (late,) = take()
        PushConfig.objects.update(lease_until=Now() - HOUR)
        (holder,) = take("there:2")
        both = [SettledAttempt(each, result(), 30.0) for each in (late, holder)]
        found = settle(both if late_first else both[::-1])
        fenced, following = found if late_first else found[::-1]
        assert isinstance(fenced, WebhookLeaseLost)
        assert isinstance(following, ClaimedWebhook)
        assert Attempt.objects.count() == 1

    def test_of_many_does_what_can_be_done(self) -> None:
        for n in range(3):
            task(f"task-{n}", f"c-{n}", url=f"https://hooks.example.com/{n}")
        first, second, third = take()
        PushConfig.objects.filter(pk=second.config).update(token="another's")
        asked = [SettledAttempt(each, result(), 30.0) for each in (first, second, third)]
        a, b, c = settle(asked)
        assert isinstance(a, ClaimedWebhook)
        assert isinstance(b, WebhookLeaseLost)
        assert isinstance(c, ClaimedWebhook)

    def test_keeps_when_to_try_again_and_why(self) -> None:
        task()
        (one,) = take()
        at = timezone.now().timestamp() + 300
        assert settled(one, Retry(at)) is None
        row, config = Delivery.objects.get(), PushConfig.objects.get()
        assert row.next_at is not None
        assert row.next_at.timestamp() == pytest.approx(at)
        assert config.due_at == row.next_at
        assert (row.attempts, row.reason, config.cursor) == (1, "answered 500", 1)

    def test_has_a_receiver_left_alone_for_as_long_as_it_asked(self) -> None:
        """The schedule of one notification is not that of the others: hours, where it asked for a minute."""
        task()
        (one,) = take()
        now = timezone.now().timestamp()
        settled(one, Retry(now + 20 * 3600, pause_until=now + 60))
        row, receiver = Delivery.objects.get(), Receiver.objects.get()
        assert row.next_at is not None
        assert receiver.paused_until is not None
        assert row.next_at.timestamp() == pytest.approx(now + 20 * 3600)
        assert receiver.paused_until.timestamp() == pytest.approx(now + 60)

    def test_of_a_shorter_pause_does_not_end_a_longer_one(self) -> None:
        task()
        (one,) = take()
        Receiver.objects.update(paused_until=Now() + HOUR)
        now = timezone.now().timestamp()
        settled(one, Retry(now + 60, pause_until=now + 60))
        paused = Receiver.objects.get().paused_until
        assert paused is not None
        assert paused.timestamp() > now + 3000

    def test_of_the_last_attempt_goes_on_with_the_next(self) -> None:
        task()
        (one,) = take()
        following = settled(one, GiveUp("10 attempts"))
        assert isinstance(following, ClaimedWebhook)
        assert Delivery.objects.get(pk=one.delivery).status == "dead"

    def test_of_what_the_host_could_not_send_is_no_attempt_and_says_nothing_of_the_receiver(
        self,
    ) -> None:
        task()
        (one,) = take()
        at = timezone.now().timestamp() + 60
        assert settled(one, Uncounted(at), fault="host", detail="the proxy: refused") is None
        row, receiver = Delivery.objects.get(), Receiver.objects.get()
        assert (row.status, row.attempts, row.reason) == ("pending", 0, "the proxy: refused")
        assert row.next_at is not None
        assert row.next_at.timestamp() == pytest.approx(at)
        assert (receiver.failed, receiver.breaker) == (0, "{}")
        assert not Attempt.objects.exists()

    def test_of_what_the_host_could_not_send_for_days_counts_but_not_against_the_receiver(
        self,
    ) -> None:
        task()
        (one,) = take()
        settled(one, Retry(timezone.now().timestamp() + 60), fault="host")
        assert Delivery.objects.get().attempts == 1
        assert (Receiver.objects.get().failed, Receiver.objects.get().breaker) == (0, "{}")

    @pytest.mark.parametrize("verdict", [Retry(0.0), GiveUp("10 attempts"), Disable("gone")])
    def test_of_what_was_refused_under_old_keys_does_not_count_for_new_ones(
        self, verdict: Any
    ) -> None:
        task()
        (one,) = take()
        registered(task_id="task-1", token="new")
        again = settled(one, verdict)
        assert isinstance(again, ClaimedWebhook)
        assert (again.delivery, again.attempt) == (one.delivery, one.attempt)
        assert configs.unseal_secrets(again.target, again.secret).token == "new"
        assert not Attempt.objects.exists()
        assert Receiver.objects.get().failed == 0
        assert PushConfig.objects.get().disabled_reason == ""

    def test_of_what_was_taken_under_old_keys_is_delivered(self) -> None:
        """The receiver has it; to send it again would be a duplicate."""
        task()
        (one,) = take()
        registered(task_id="task-1", token="new")
        settled(one)
        assert Delivery.objects.get(pk=one.delivery).status == "delivered"

    def test_of_what_was_refused_counts_if_the_same_was_registered_again(self) -> None:
        """Clients do so with every message."""
        task()
        (one,) = take()
        registered(task_id="task-1")
        settled(one, Retry(timezone.now().timestamp() + 60))
        assert Delivery.objects.get().attempts == 1

    def test_of_what_was_refused_counts_if_the_same_came_with_the_successor(self) -> None:
        pen = task()
        (one,) = take()
        successor = held("task-2")
        registered(task_id="task-2")
        configs.move(pen.run.task, successor.task)
        settled(one, Retry(timezone.now().timestamp() + 60))
        assert Delivery.objects.get(pk=one.delivery).attempts == 1

    def test_at_a_receiver_switched_off_meanwhile_buries_what_waits(self) -> None:
        task()
        (one,) = take()
        switches.disable(one.receiver, "enough")
        assert settled(one, Retry(timezone.now().timestamp())) is None
        assert [row.reason for row in Delivery.objects.order_by("pk")] == ["enough", "enough"]
        assert not PushConfig.objects.get().active


class TestRowsAtOnce:
    def test_get_values_of_their_own(self) -> None:
        for n in range(3):
            task(f"task-{n}", f"c-{n}")
        rows = list(PushConfig.objects.all())
        for n, row in enumerate(rows):
            row.cursor, row.disabled_reason = n, f"reason {n}"
            row.due_at = timezone.now() if n else None
        update_each(rows, ["cursor", "disabled_reason", "due_at"])
        kept = PushConfig.objects.order_by("pk")
        assert [row.cursor for row in kept] == [0, 1, 2]
        assert [row.due_at is None for row in kept] == [True, False, False]
        assert [row.disabled_reason for row in kept] == ["reason 0", "reason 1", "reason 2"]

    def test_may_be_none(self) -> None:
        update_each([], ["cursor"])
