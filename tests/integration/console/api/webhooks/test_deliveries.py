"""Deliveries: looked at with why they wait, tried now, sent again one by one and in batches."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from a2a_push.models import Delivery, DeliveryStatus, PushConfig, Trigger
from a2a_push.store import switches
from tests.support.console.admin.rows import make_task
from tests.support.console.api.world import asked, key_of, person, populated
from tests.support.push.rows import (
    add_attempt,
    give_up,
    make_config,
    make_delivery,
    make_receiver,
    share_body,
)
from tests.support.rows import rolled_back, rows

pytestmark = pytest.mark.django_db

VIEW, SEND = "a2a_push.view_delivery", "a2a_push.change_delivery"
DELIVERIES = "/webhooks/deliveries"


def keys(who: Any, query: str = "") -> list[int]:
    answer = asked(who, f"{DELIVERIES}?{query}")
    assert answer.status == 200, answer.body
    return [item["key"] for item in answer.json["items"]]


class TestTheList:
    def test_has_what_is_asked_for(self) -> None:
        one, two = make_task("one"), make_task("two", agent="tables")
        config = make_config(one)
        other = make_config(two, "c-2", receiver=make_receiver("https://other.example.com/"))
        dead = make_delivery(config, DeliveryStatus.DEAD)
        waiting, elsewhere = make_delivery(config), make_delivery(other, DeliveryStatus.DELIVERED)
        bob = person(VIEW)
        assert keys(bob) == [elsewhere.pk, waiting.pk, dead.pk]
        assert keys(bob, "status=dead&status=delivered") == [elsewhere.pk, dead.pk]
        assert keys(bob, "agent=tables") == [elsewhere.pk]
        assert keys(bob, f"receiver_key={other.receiver_id}") == [elsewhere.pk]
        assert keys(bob, f"config_key={config.pk}") == [waiting.pk, dead.pk]
        assert keys(bob, f"task_key={two.pk}") == [elsewhere.pk]
        assert keys(bob, f"id={dead.webhook_id}") == [dead.pk]
        assert keys(bob, "created_after=2100-01-01") == []
        assert keys(bob, f"receiver_key={2**63 - 1}") == []

    def test_says_why_each_waits_or_died(self) -> None:
        world = populated()
        add_attempt(world.delivery, 503)
        waiting, dead = asked(person(VIEW), DELIVERIES).json["items"]
        assert waiting["reason"].startswith("The webhook is disabled")
        assert waiting["last_attempt"] is None
        assert (dead["reason"], dead["last_attempt"]["status"]) == ("answered 500", 503)


class TestADelivery:
    def test_is_shown_with_what_is_sent_and_every_attempt(self) -> None:
        world = populated()
        add_attempt(world.delivery, None, excerpt="what it said", detail="no answer in 15 s")
        shown = asked(person(VIEW), f"{DELIVERIES}/{world.delivery.pk}").json
        assert shown["body"] == {"statusUpdate": {"status": {"state": "TASK_STATE_WORKING"}}}
        assert [(a["number"], a["status"]) for a in shown["tries"]] == [(1, 500), (2, None)]
        assert shown["tries"][1]["excerpt"] == "what it said"

    def test_is_shown_with_a_body_that_is_stored_once_for_many(self) -> None:
        row = make_delivery(make_config(make_task()), body="")
        share_body(row, '{"kind":"task"}')
        shown = asked(person(VIEW), f"{DELIVERIES}/{row.pk}").json
        assert (shown["size"], shown["body"]) == (15, {"kind": "task"})

    @pytest.mark.django_db
    def test_that_waits_is_tried_now(self) -> None:
        world = populated()
        later = timezone.now() + timedelta(hours=1)
        Delivery.objects.filter(pk=world.waiting.pk).update(next_at=later)
        answer = asked(key_of("admin:write"), f"{DELIVERIES}/{world.waiting.pk}/try-now", post=True)
        assert (answer.status, answer.json["next_at"]) == (200, None)
        world.waiting.refresh_from_db()
        assert world.waiting.trigger == Trigger.OPERATOR
        dead = asked(key_of("admin:write"), f"{DELIVERIES}/{world.delivery.pk}/try-now", post=True)
        assert (dead.status, dead.code) == (409, "conflict")

    @pytest.mark.django_db
    def test_that_died_is_sent_again(self) -> None:
        world = populated()
        url = f"{DELIVERIES}/{world.delivery.pk}/replay"
        answer = asked(key_of("admin:write"), url, post=True)
        assert (answer.status, answer.json["status"], answer.json["replays"]) == (200, "pending", 1)
        again = asked(key_of("admin:write"), url, post=True)
        assert (again.status, again.code) == (409, "conflict")

    @pytest.mark.django_db
    @pytest.mark.parametrize("verb", ["replay", "try-now"])
    def test_whose_receiver_somebody_switched_off_is_not_sent_and_told_why(self, verb: str) -> None:
        world = populated()
        row = world.delivery if verb == "replay" else world.waiting
        switches.disable(row.receiver_id, "they asked for it")
        answer = asked(key_of("admin:write"), f"{DELIVERIES}/{row.pk}/{verb}", post=True)
        assert (answer.status, answer.code) == (409, "conflict")
        assert "The receiver is disabled: they asked for it" in answer.json["detail"]

    @pytest.mark.django_db
    def test_whose_webhook_is_gone_is_not_sent_again(self) -> None:
        world = populated()
        PushConfig.objects.all().delete()
        url = f"{DELIVERIES}/{world.delivery.pk}/replay"
        assert asked(key_of("admin:write"), url, post=True).status == 409


@pytest.mark.django_db
class TestReplayingMany:
    def replayed(self, **said: Any) -> dict[str, Any]:
        """The answer to a replay."""
        answer = asked(key_of("admin:write"), f"{DELIVERIES}/replay", said)
        assert answer.status == 200, answer.body
        found: dict[str, Any] = answer.json
        return found

    def test_goes_in_batches_until_all_are_sent(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("a2a_console.api.webhooks.deliveries.BATCH", 2)
        config = make_config(make_task())
        for status in (
            DeliveryStatus.DEAD,
            DeliveryStatus.DELIVERED,
            DeliveryStatus.DEAD,
            DeliveryStatus.PENDING,
            DeliveryStatus.DEAD,
        ):
            make_delivery(config, status)
        first = self.replayed(all=True)
        assert (first["found"], first["replayed"], first["left_alone"]) == (2, 2, 0)
        second = self.replayed(all=True, cursor=first["next"])
        assert (second["found"], second["replayed"], second["next"]) == (1, 1, None)
        assert Delivery.objects.filter(status=DeliveryStatus.PENDING).count() == 4

    def test_of_delivered_ones_sends_each_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("a2a_console.api.webhooks.deliveries.BATCH", 2)
        config = make_config(make_task())
        for _ in range(5):
            make_delivery(config, DeliveryStatus.DELIVERED)
        told, rounds = self.replayed(also_delivered=True, agent="demo"), 1
        while told["next"]:
            # What was sent is delivered before the next request.
            sent = Delivery.objects.filter(status=DeliveryStatus.PENDING)
            sent.update(status=DeliveryStatus.DELIVERED, settled_at=timezone.now())
            told = self.replayed(also_delivered=True, agent="demo", cursor=told["next"])
            rounds += 1
        assert rounds == 3
        assert set(Delivery.objects.values_list("replays", flat=True)) == {1}

    def test_narrows_by_what_is_said(self) -> None:
        one, two = populated(name="one"), populated(name="two")
        now = timezone.now()
        assert self.replayed(agent="tables")["found"] == 0
        assert self.replayed(since=(now + timedelta(hours=1)).isoformat())["found"] == 0
        assert self.replayed(until="2020-01-01T00:00:00Z")["found"] == 0
        assert self.replayed(receiver_key=one.receiver.pk, dry_run=True)["found"] == 1
        assert self.replayed(task_key=two.task.pk)["replayed"] == 1
        one.delivery.refresh_from_db()
        assert one.delivery.status == DeliveryStatus.DEAD
        told = self.replayed(ids=[one.delivery.webhook_id, one.waiting.webhook_id, "msg_unknown"])
        assert (told["replayed"], told["left_alone"]) == (1, 2)

    def test_of_a_tenant_sends_nothing_of_anothers(self) -> None:
        theirs = populated("globex")
        mine = key_of("admin:write", tenant="acme")
        for said in ({"all": True}, {"ids": [theirs.delivery.webhook_id]}):
            answer = asked(mine, f"{DELIVERIES}/replay", said)
            assert (answer.json["found"], answer.json["replayed"]) == (0, 0)

    def test_counts_and_sends_nothing_on_a_dry_run(self) -> None:
        populated()
        told = self.replayed(all=True, dry_run=True)
        assert told == {
            "found": 1,
            "replayed": 0,
            "left_alone": 1,
            "next": None,
            "on_trial": 1,
            "held_back": 0,
        }
        assert Delivery.objects.filter(status=DeliveryStatus.DEAD).count() == 1

    def test_tells_what_goes_to_who_was_given_up_and_what_is_not_sent(self) -> None:
        off, tired = make_receiver("https://off.example/"), make_receiver("https://tired.example/")
        switches.disable(off.pk, "they asked for it")
        give_up(tired)
        for name, receiver in (("one", off), ("two", tired), ("three", make_receiver())):
            make_delivery(make_config(make_task(name), receiver=receiver), DeliveryStatus.DEAD)
        said = {"found": 3, "on_trial": 1, "held_back": 1, "next": None}
        told = self.replayed(all=True, dry_run=True)
        assert told == {**said, "replayed": 0, "left_alone": 3}
        told = self.replayed(all=True)
        assert told == {**said, "replayed": 2, "left_alone": 1}

    @rows(
        ("said", "name"),
        [
            ({}, "all"),
            ({"all": False}, "all"),
            ({"dry_run": True}, "all"),
            ({"ids": []}, "ids"),
            ({"ids": ["x"] * 1001}, "ids"),
            ({"recever_key": 1}, "recever_key"),
            ({"receiver_key": 0}, "receiver_key"),
            ({"all": True, "cursor": "x"}, "cursor"),
        ],
        ids=str,
        within=rolled_back,
    )
    def test_wants_to_be_told_which(self, said: dict[str, Any], name: str) -> None:
        populated()
        answer = asked(key_of("admin:write"), f"{DELIVERIES}/replay", said)
        assert (answer.status, answer.json["errors"][0]["name"]) == (400, name)
        assert not Delivery.objects.filter(replays__gt=0).exists()
