"""Large bodies: what is left out, what is stored once, and how much one transaction builds. One contract for both databases."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from a2a_console.privacy.erasure import erase
from a2a_console.privacy.principal import Principal
from a2a_push.envelope import OMITTED
from a2a_push.models import Delivery, DeliveryBody, PushConfig
from a2a_push.store import claims, retention
from a2a_push.store.records import LARGE
from a2a_tasks.models import Artifact
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import folding
from a2a_tasks.store.purge import RetentionLimits, purge
from tests.integration.push.test_retention import MONTH
from tests.integration.push.test_work import settled
from tests.support.execution.waiting import eventually
from tests.support.push.configs import registered
from tests.support.store.world import ALICE, Pen, held

pytestmark = pytest.mark.django_db
MIB = 1024 * 1024
OLD = ("s0", "v00", "v02", "v03")


def task(size: int, name: str = "task-1", *, pieces: int = 1, closed: bool = True) -> Pen:
    """A task with an artifact of so many bytes, that works."""
    pen = Pen(held(name))
    pen.state(TaskState.WORKING)
    pen.begin("a", "x" * (size // pieces))
    for _ in range(pieces - 1):
        pen.add("a", "x" * (size // pieces))
    if closed:
        pen.close("a", "end")
    return pen


def take(room: int = claims.BATCH_BYTES) -> claims.ClaimedBatch:
    """All that is due, in one transaction."""
    keys = [candidate.config for candidate in claims.sweep(0)[0]]
    return claims.take(keys, worker="here:1", lease_seconds=30, room=room)


def webhooks(count: int, name: str = "task-1", dialect: str = "v03") -> None:
    for n in range(count):
        registered(f"{name}-{n}", task_id=name, dialect=dialect, url=f"https://{n}.example.com/")


def note(task: dict[str, Any]) -> dict[str, Any]:
    """What a task says of what was left out: in its metadata, or in those of its status message where it has none."""
    said = task.get("metadata") or task["status"]["message"]["metadata"]
    found: dict[str, Any] = said[OMITTED]
    return found


class TestATaskBeyondTheLimit:
    @pytest.mark.parametrize("dialect", OLD)
    def test_is_sent_without_artifacts_and_history_and_says_where_they_are(
        self, dialect: str
    ) -> None:
        pen = task(2 * MIB)
        webhooks(1, dialect=dialect)
        pen.end()
        (one,) = take().claimed
        said = json.loads(one.notification.body)
        assert (said["id"], said["status"]["state"]) == ("task-1", "completed")
        assert "artifacts" not in said
        assert "history" not in said
        assert note(said)["maxBytes"] == MIB
        assert "Get the task" in note(said)["description"]

    def test_keeps_the_message_of_its_status(self) -> None:
        pen = task(2 * MIB)
        webhooks(1)
        pen.state(TaskState.INPUT_REQUIRED, "which one?")
        (one,) = take().claimed
        said = json.loads(one.notification.body)
        assert said["status"]["message"]["parts"][0]["text"] == "which one?"

    @pytest.mark.parametrize("dialect", [*OLD, "v01"])
    def test_is_sent_without_a_message_that_is_too_long_itself(self, dialect: str) -> None:
        pen = task(10)
        webhooks(1, dialect=dialect)
        pen.end(text="x" * 2 * MIB)
        (one,) = take().claimed
        said = json.loads(one.notification.body)
        assert len(one.notification.body) < 2000
        assert said["status"]["state"] == "completed"
        assert note(said)

    def test_that_fits_is_whole(self) -> None:
        pen = task(MIB // 2)
        webhooks(1)
        pen.end()
        (one,) = take().claimed
        assert len(one.notification.body) > MIB // 2
        assert OMITTED.encode() not in one.notification.body

    @pytest.mark.parametrize("closed", [True, False], ids=["closed", "growing"])
    def test_is_not_read_for_its_webhooks(
        self, closed: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(folding, "FEW_PIECES", 0)
        pen = task(16 * MIB, pieces=8, closed=closed)
        webhooks(16)
        pen.state(TaskState.INPUT_REQUIRED)
        eventually(lambda: Artifact.objects.exclude(body="").exists() is closed)
        tracemalloc.start()
        try:
            found = take().claimed
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert len(found) == 16
        assert most < 4 * MIB


class TestAnEventBeyondTheLimit:
    @pytest.mark.parametrize(
        ("dialect", "state"), [("v10", "TASK_STATE_WORKING"), ("dr", "working")]
    )
    def test_is_told_as_the_task_as_it_stood_then(self, dialect: str, state: str) -> None:
        pen = Pen(held())
        registered(dialect=dialect)
        pen.state(TaskState.WORKING)
        pen.begin("a", "x" * 2 * MIB)
        pen.close("a", "end")
        pen.end()
        (one,) = take().claimed
        found = []
        while one is not None:
            found.append(json.loads(one.notification.body))
            one = settled(one)
        assert [next(iter(said)) for said in found] == [
            "statusUpdate",
            "task",
            "artifactUpdate",
            "statusUpdate",
        ]
        brief = found[1]["task"]
        assert (brief["id"], brief["contextId"]) == ("task-1", "context-1")
        assert brief["status"]["state"] == state
        assert note(brief)
        assert Delivery.objects.order_by("pk")[1].number == 3

    @pytest.mark.parametrize("dialect", ["v10", "dr"])
    def test_with_a_long_message_is_told_without_it(self, dialect: str) -> None:
        pen = Pen(held())
        registered(dialect=dialect)
        pen.end(text="x" * 2 * MIB)
        (one,) = take().claimed
        brief = json.loads(one.notification.body)["task"]
        assert "message" not in brief["status"]
        assert note(brief)

    def test_that_fits_is_told_as_it_is(self) -> None:
        pen = Pen(held())
        registered()
        pen.begin("a", "x" * (MIB // 2))
        pen.close("a", "end")
        (one,) = take().claimed
        (part,) = json.loads(one.notification.body)["artifactUpdate"]["artifact"]["parts"]
        assert len(part["text"]) == MIB // 2


class TestALongBody:
    def test_is_stored_once_for_all_webhooks_of_an_event_and_dialect(self) -> None:
        pen = task(MIB // 5)
        webhooks(15)
        registered("old", dialect="v02")
        pen.end()
        found = take().claimed
        assert len({one.notification.body for one in found if one.target.dialect == "v03"}) == 1
        assert len({one.notification.id for one in found}) == 16
        assert {row.dialect for row in DeliveryBody.objects.all()} == {"v02", "v03"}
        assert DeliveryBody.objects.count() == 2
        assert set(Delivery.objects.values_list("body", flat=True)) == {""}

    def test_is_the_same_whenever_it_is_tried(self) -> None:
        pen = task(MIB // 2)
        webhooks(1)
        pen.end()
        (one,) = take().claimed
        claims.give_back([one])
        (again,) = take().claimed
        assert again.notification == one.notification

    def test_that_is_short_stays_with_its_delivery(self) -> None:
        pen = task(100)
        webhooks(2)
        pen.end()
        assert {len(one.notification.body) < LARGE for one in take().claimed} == {True}
        assert not DeliveryBody.objects.exists()

    def test_goes_with_the_last_delivery_that_needs_it(self) -> None:
        pen = task(MIB // 2)
        webhooks(2)
        pen.end()
        first, second = take().claimed
        for one, left in ((first, 1), (second, 0)):
            settled(one)
            Delivery.objects.filter(pk=one.delivery).update(settled_at=one.made_at - MONTH)
            assert retention.forget(100) > 0
            assert DeliveryBody.objects.count() == left

    def test_goes_with_its_task(self) -> None:
        pen = task(MIB // 2)
        registered()
        pen.end()
        DeliveryBody.objects.create(task_id=PushConfig.objects.get().task_id, **ANY)
        PushConfig.objects.all().delete()
        Delivery.objects.all().delete()
        assert sum(removed.tasks for removed in purge(RetentionLimits.of(1e-9, 0))) == 1
        assert not DeliveryBody.objects.exists()

    def test_goes_with_whoever_is_erased(self) -> None:
        task(MIB // 2).end()
        registered()
        DeliveryBody.objects.create(task_id=PushConfig.objects.get().task_id, **ANY)
        for _ in erase(Principal(ALICE.owner)):
            pass
        assert not DeliveryBody.objects.exists()


ANY = {"number": 1, "through": 1, "dialect": "v03", "size": 1, "body": "x"}


class TestATransaction:
    """What one builds and hands out is bounded; the rest is left for the next."""

    @staticmethod
    def many(count: int) -> None:
        """So many tasks, each with a webhook that is told of almost a megabyte."""
        for n in range(count):
            pen = task(900 * 1024, f"t-{n}")
            webhooks(1, f"t-{n}")
            pen.end()

    def test_builds_no_more_than_a_few_megabytes(self) -> None:
        self.many(16)
        rounds = []
        while Delivery.objects.count() < 16:
            found = take()
            rounds.append(len(found.claimed))
            assert len(found.claimed) + len(found.left) == 16 - sum(rounds[:-1])
        assert rounds == [5, 5, 5, 1]

    def test_holds_no_more_than_there_is_room_for_and_all_that_is_small(self) -> None:
        self.many(3)
        pen = task(10, "small")
        webhooks(1, "small")
        pen.end()
        found = take(room=0)
        assert [one.target.task_id for one in found.claimed] == ["small"]
        assert len(found.left) == 3
        assert min(found.left.values()) > LARGE
        assert len(take(room=1).claimed) == 1, "what has room for anything has room for one"
        assert len(take(room=MIB).claimed) == 2

    def test_of_a_disabled_webhook_stores_no_more_either(self) -> None:
        pen = Pen(held())
        registered()
        registered("c-2")
        for n in range(12):
            pen.state(TaskState.WORKING, "x" * 450 * 1024 + str(n))
        PushConfig.objects.update(disabled_reason="gone", cursor=1, looked=1)
        counts: list[int] = []
        for _ in range(4):
            assert take().claimed == []
            counts.append(Delivery.objects.filter(status="dead").count())
        assert counts == [5, 10, 24, 24]

    def test_that_settles_goes_on_with_no_more_than_there_is_room_for(self) -> None:
        pen = Pen(held())
        registered()
        pen.state(TaskState.WORKING)
        pen.state(TaskState.WORKING, "x" * 450 * 1024)
        (one,) = take().claimed
        assert settled(one, room=0) is None
        assert PushConfig.objects.get().token == ""
        (large,) = take().claimed
        assert len(large.notification.body) > LARGE


class TestALogOfManyPieces:
    def test_is_not_read_for_a_webhook_that_is_told_of_states(
        self, django_assert_max_num_queries: Any
    ) -> None:
        pen = task(1000, pieces=200, closed=False)
        webhooks(1)
        pen.end()
        with django_assert_max_num_queries(30):
            (one,) = take().claimed
        assert json.loads(one.notification.body)["status"]["state"] == "completed"
