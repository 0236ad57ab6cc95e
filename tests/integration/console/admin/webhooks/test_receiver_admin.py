"""The receiver admin: how each stands, switching, and sending a span again."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from a2a_push.breaker import Breaker, Phase
from a2a_push.models import Delivery, DeliveryStatus, Receiver
from a2a_push.store import switches
from a2a_tasks.protocol.jsontext import write
from tests.support.console.admin.people import SignIn
from tests.support.console.admin.rows import make_task
from tests.support.push.rows import add_attempt, give_up, make_config, make_delivery, make_receiver
from tests.support.rows import rolled_back, rows

LIST = "/admin/a2a_push/receiver/"
YES = {"confirmed": "yes"}
SCRIPT = "<script>alert(1)</script>"


def page_of(receiver: Receiver) -> str:
    return reverse("admin:a2a_push_receiver_change", args=[receiver.pk])


def listed(client: Client, query: str) -> list[str]:
    answer = client.get(LIST + query)
    assert answer.status_code == 200
    return [row.address for row in answer.context["cl"].result_list]


def in_phase(phase: Phase, reason: str) -> str:
    return write(Breaker(phase=phase, reason=reason, in_a_row=10, openings=2)).decode()


@pytest.mark.django_db
class TestLooking:
    def test_filters_by_health_and_finds_by_a_piece_of_the_address(
        self, admin_client: Client
    ) -> None:
        now = timezone.now()
        make_receiver("https://well/", well=True, last_failure_at=now)
        make_receiver("https://off/", disabled_at=now)
        make_receiver("https://open/", breaker=in_phase(Phase.OPEN, "x"), probe_at=now)
        make_receiver("https://half/", breaker=in_phase(Phase.HALF_OPEN, "x"), probe_at=now)
        make_receiver("https://bad/", last_failure_at=now)
        make_receiver("https://busy/", paused_until=now + timedelta(hours=1))
        for query, found in [
            ("?health=disabled", ["https://off/"]),
            ("?health=open", ["https://open/"]),
            ("?health=half-open", ["https://half/"]),
            ("?health=failing", ["https://bad/"]),
            ("?health=paused", ["https://busy/"]),
            ("?health=gone", ["https://well/"]),
            ("?q=https://bad/%3Fkey=1", ["https://bad/"]),
            ("?q=open", ["https://open/"]),
        ]:
            assert listed(admin_client, query) == found, query

    def test_tells_apart_those_of_several_tenants_at_one_address(
        self, admin_client: Client
    ) -> None:
        now = timezone.now()
        for tenant in ("acme", "umbrella"):
            make_receiver("https://hooks/", tenant=tenant, disabled_at=now)
        filters = admin_client.get("/admin/a2a_push/delivery/").text
        rows = admin_client.get(LIST).text
        for tenant in ("acme", "umbrella"):
            assert f"https://hooks/ ({tenant})" in filters
            assert f'<span class="a2a-quiet">{tenant}</span>' in rows

    def test_the_page_says_how_it_stands_and_what_is_told(self, admin_client: Client) -> None:
        until = timezone.now() + timedelta(minutes=5)
        receiver = make_receiver(
            breaker=in_phase(Phase.OPEN, "answered 503"), probe_at=until, delivered=12, failed=31
        )
        config = make_config(make_task("the-task"))
        make_delivery(config, DeliveryStatus.DEAD, reason="10 attempts")
        body = admin_client.get(page_of(receiver)).text
        for expected in (
            "answered 503",
            until.strftime("%H:%M:%S"),
            "31",
            "the-task",
            "10 attempts",
        ):
            assert expected in body

    def test_the_page_shows_the_newest_attempts_with_what_was_answered(
        self, admin_client: Client
    ) -> None:
        delivery = make_delivery(make_config(make_task()), DeliveryStatus.DELIVERED)
        for seconds, status in ((0.1, 503), (0.3, 200), (0.2, 200)):
            add_attempt(delivery, status, seconds=seconds, excerpt=SCRIPT)
        page = admin_client.get(page_of(Receiver.objects.get()))
        figures = page.context["attempts"]
        assert (figures.count, figures.succeeded) == (3, "66.7 %")
        assert (figures.p50, figures.p95) == ("200 ms", "200 ms")
        assert "The breaker is closed" in page.text
        assert SCRIPT not in page.text
        assert "&lt;script&gt;" in page.text

    def test_says_that_it_answered_410(self, admin_client: Client) -> None:
        receiver = make_receiver(well=True, last_failure_at=timezone.now())
        assert "It answered 410 (gone)" in admin_client.get(page_of(receiver)).text
        assert "a2a-badge a2a-gone" in admin_client.get(LIST).text

    def test_viewing_is_enough_to_look_and_not_to_switch(self, sign_in: SignIn) -> None:
        client, receiver = sign_in("view_receiver"), make_receiver()
        dead = make_delivery(make_config(make_task()), DeliveryStatus.DEAD)
        body = client.get(page_of(receiver)).text
        assert "Disable" not in body
        assert "Send again" not in body
        assert dead.webhook_id[:12] not in body
        for name in ("disable", "enable", "replay"):
            assert client.post(f"{LIST}{receiver.pk}/{name}/", YES).status_code == 403
            assert client.get(f"{LIST}{receiver.pk}/{name}/").status_code == 405


@pytest.mark.django_db
class TestSwitching:
    def test_off_asks_first_and_keeps_the_reason_and_on_again(self, sign_in: SignIn) -> None:
        client, receiver = sign_in("view_receiver", "change_receiver"), make_receiver()
        why = {"reason": "they  move house"}
        asked = client.post(f"{LIST}{receiver.pk}/disable/", why)
        assert "they  move house" in asked.text
        receiver.refresh_from_db()
        assert receiver.disabled_at is None
        client.post(f"{LIST}{receiver.pk}/disable/", {**why, **YES})
        receiver.refresh_from_db()
        assert receiver.disabled_reason == "they move house"
        again = client.post(f"{LIST}{receiver.pk}/disable/", {**why, **YES}, follow=True)
        assert "was disabled already" in again.text
        assert "Enable the receiver?" in client.post(f"{LIST}{receiver.pk}/enable/").text
        done = client.post(f"{LIST}{receiver.pk}/enable/", YES, follow=True)
        assert "The receiver is enabled." in done.text
        receiver.refresh_from_db()
        assert receiver.disabled_at is None
        assert LogEntry.objects.count() == 2
        left = client.post(f"{LIST}{receiver.pk}/enable/", YES, follow=True)
        assert "Nothing kept it" in left.text

    def test_an_open_breaker_is_closed(self, admin_client: Client) -> None:
        soon = timezone.now() + timedelta(hours=1)
        receiver = make_receiver(breaker=in_phase(Phase.OPEN, "answered 500"), probe_at=soon)
        assert "/enable/" in admin_client.get(page_of(receiver)).text
        admin_client.post(f"{LIST}{receiver.pk}/enable/", YES)
        assert "/enable/" not in admin_client.get(page_of(receiver)).text


@pytest.mark.django_db
class TestSendingASpanAgain:
    SPAN = {"since": "2026-11-20T08:00", "until": "2026-11-20T09:00:00"}

    def made(self, hour: int, status: DeliveryStatus, task: str = "one") -> Delivery:
        """A delivery made at that hour of the day."""
        row = make_delivery(make_config(make_task(f"{task}-{hour}")), status)
        at = datetime(2026, 11, 20, hour, 30, tzinfo=timezone.get_current_timezone())
        Delivery.objects.filter(pk=row.pk).update(created_at=at)
        return row

    def statuses(self, *rows: Delivery) -> list[str]:
        for row in rows:
            row.refresh_from_db()
        return [row.status for row in rows]

    def test_asks_with_a_count_then_sends_what_is_dead(self, admin_client: Client) -> None:
        early, dead = self.made(7, DeliveryStatus.DEAD), self.made(8, DeliveryStatus.DEAD)
        came = self.made(8, DeliveryStatus.DELIVERED, "two")
        url = f"{LIST}{dead.receiver_id}/replay/"
        asked = admin_client.post(url, {**self.SPAN, "only_dead": "on"})
        assert "Dead ones made from 2026-11-20 08:00:00 until 2026-11-20 09:00:00: 1." in asked.text
        assert self.statuses(dead) == [DeliveryStatus.DEAD]
        done = admin_client.post(url, {**self.SPAN, "only_dead": "on", **YES}, follow=True)
        assert "Will be sent again: 1." in done.text
        assert self.statuses(early, dead, came) == ["dead", "pending", "delivered"]
        assert LogEntry.objects.count() == 1

    def test_says_beforehand_what_will_not_be_sent_and_what_is_tried_all_the_same(
        self, admin_client: Client
    ) -> None:
        dead = self.made(8, DeliveryStatus.DEAD)
        url, said = f"{LIST}{dead.receiver_id}/replay/", {**self.SPAN, "only_dead": "on"}
        give_up(dead.receiver)
        assert "receiver or webhook that was disabled automatically: 1" in (
            admin_client.post(url, said).text
        )
        switches.disable(dead.receiver_id, "they asked for it")
        assert "because an operator disabled the receiver: 1" in (admin_client.post(url, said).text)
        assert "Will be sent again: 0." in admin_client.post(url, {**said, **YES}, follow=True).text
        assert self.statuses(dead) == [DeliveryStatus.DEAD]

    def test_sends_what_was_delivered_if_asked_to(self, admin_client: Client) -> None:
        came = self.made(8, DeliveryStatus.DELIVERED)
        url = f"{LIST}{came.receiver_id}/replay/"
        assert "will come twice" in admin_client.post(url, self.SPAN).text
        admin_client.post(url, {**self.SPAN, **YES})
        assert self.statuses(came) == [DeliveryStatus.PENDING]

    @rows(
        ("span", "said"),
        [
            ({"since": "x"}, "Made from: Enter a valid date/time."),
            ({"since": ""}, "Made from: This field is required."),
            ({"since": "2026-11-20T10:00"}, "The span must end after it begins."),
        ],
        within=rolled_back,
    )
    def test_says_what_is_wrong_with_a_span(
        self, admin_client: Client, span: dict[str, str], said: str
    ) -> None:
        dead = self.made(8, DeliveryStatus.DEAD)
        url = f"{LIST}{dead.receiver_id}/replay/"
        assert said in admin_client.post(url, {**self.SPAN, **span, **YES}, follow=True).text
        assert self.statuses(dead) == [DeliveryStatus.DEAD]
