"""The delivery admin: lists that stay fast, a page that says all, sending again and now."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from a2a_console.search import key_ranges
from a2a_push.breaker import Breaker, Phase
from a2a_push.models import Delivery, DeliveryStatus, Trigger
from a2a_tasks.protocol.jsontext import write
from tests.support.console.admin.people import SignIn
from tests.support.console.admin.rows import make_task
from tests.support.push.rows import (
    add_attempt,
    give_up,
    make_config,
    make_delivery,
    make_receiver,
    share_body,
)
from tests.support.rows import rolled_back, rows
from tests.support.thorough import thorough

pytestmark = pytest.mark.django_db

LIST = "/admin/a2a_push/delivery/"
YES = {"confirmed": "yes"}


def page_of(delivery: Delivery) -> str:
    return reverse("admin:a2a_push_delivery_change", args=[delivery.pk])


def listed(client: Client, query: str) -> list[int]:
    answer = client.get(LIST + query)
    assert answer.status_code == 200, answer.status_code
    return [row.pk for row in answer.context["cl"].result_list]


def status_of(delivery: Delivery) -> str:
    delivery.refresh_from_db()
    return delivery.status


class TestTheList:
    def test_filters(self, admin_client: Client) -> None:
        one = make_config(make_task("one", agent="demo"))
        slow = make_receiver("https://slow.example.com/")
        two = make_config(make_task("two", agent="tables"), receiver=slow)
        pending = make_delivery(one)
        dead = make_delivery(one, DeliveryStatus.DEAD)
        delivered = make_delivery(two, DeliveryStatus.DELIVERED)
        for query, found in [
            ("", [delivered, dead, pending]),
            ("?status=pending", [pending]),
            ("?status=dead", [dead]),
            ("?status=delivered", [delivered]),
            ("?status=cancelled", []),
            ("?agent=tables", [delivered]),
            (f"?receiver={slow.pk}", [delivered]),
            (f"?config={one.pk}&status=dead", [dead]),
            ("?created=hour", [delivered, dead, pending]),
            ("?created=older-day", []),
        ]:
            assert listed(admin_client, query) == [row.pk for row in found], query
        for query in ("?status=nonsense", "?receiver=x", f"?receiver={'9' * 30}", "?config=x"):
            assert admin_client.get(LIST + query).status_code == 400, query

    def test_finds_by_number_by_webhook_id_and_by_task_id(self, admin_client: Client) -> None:
        config = make_config(make_task("the-task"))
        one, two = make_delivery(config), make_delivery(config, DeliveryStatus.DEAD)
        make_delivery(make_config(make_task("another")))
        assert listed(admin_client, f"?q={one.webhook_id}") == [one.pk]
        assert listed(admin_client, f"?q={two.pk}") == [two.pk]
        assert listed(admin_client, "?q=the-task") == [two.pk, one.pk]
        assert listed(admin_client, "?q=the-tas") == []
        assert listed(admin_client, f"?q={'9' * 30}") == []

    def test_says_what_the_last_attempt_got_and_why_it_waits(self, admin_client: Client) -> None:
        config = make_config(make_task())
        at = timezone.now() + timedelta(minutes=28)
        first = make_delivery(config, attempts=2, reason="answered 503", next_at=at)
        add_attempt(first, 500)
        add_attempt(first, None, seconds=15.0)
        make_delivery(config)
        body = admin_client.get(LIST).text
        assert "The next attempt, 3 of 10, comes at" in body
        assert "An earlier notification of the webhook goes first." in body
        assert "timeout" in body
        assert "15 s" in body

    def test_waits_as_long_as_the_breaker_of_its_receiver(self, admin_client: Client) -> None:
        probe = timezone.now() + timedelta(minutes=6)
        breaker = write(Breaker(phase=Phase.OPEN, reason="answered 503")).decode()
        receiver = make_receiver(breaker=breaker, probe_at=probe)
        make_delivery(make_config(make_task(), receiver=receiver))
        cells = admin_client.get(LIST).text
        assert "The breaker is open until" in cells
        assert "at once" not in cells

    def test_offers_the_receivers_in_trouble_and_the_one_asked_for(
        self, admin_client: Client
    ) -> None:
        make_receiver("https://well.example.com/")
        make_receiver("https://off.example.com/", disabled_at=timezone.now())
        body = admin_client.get(LIST).text
        assert "https://off.example.com/" in body
        assert "https://well.example.com/" not in body

    @pytest.mark.parametrize(
        "query",
        [
            thorough(""),
            "?q=task-3",
            "?status=dead&created=day",
            thorough("?agent=demo"),
            thorough("?_facets=True"),
        ],
    )
    def test_counts_no_table_and_asks_the_same_few_queries_for_any_number_of_rows(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch, query: str
    ) -> None:
        # Keys go on from test to test: after how many steps the search by age ends would be chance.
        monkeypatch.setattr(key_ranges, "BRACKET", 10**9)

        def more(numbers: range) -> None:
            for number in numbers:
                config = make_config(make_task(f"task-{number}"))
                add_attempt(make_delivery(config, DeliveryStatus.DEAD))

        more(range(5))
        with CaptureQueriesContext(connection) as few:
            admin_client.get(LIST + query)
        more(range(5, 30))
        with CaptureQueriesContext(connection) as many:
            admin_client.get(LIST + query)
        assert len(many) <= len(few) <= 12
        for asked in many.captured_queries:
            statement = asked["sql"].upper()
            if "A2A_PUSH_" in statement:
                assert "COUNT(" not in statement or "LIMIT" in statement, statement

    def test_reads_no_bodies_and_no_secrets(self, admin_client: Client) -> None:
        make_delivery(make_config(make_task()))
        with CaptureQueriesContext(connection) as asked:
            admin_client.get(LIST)
        statements = " ".join(query["sql"] for query in asked.captured_queries)
        assert '"body"' not in statements
        assert '"secret"' not in statements

    @rows("query", ["?body__contains=x", "?config__secret=x"], within=rolled_back)
    def test_refuses_lookups_that_have_no_index(self, admin_client: Client, query: str) -> None:
        assert admin_client.get(LIST + query).status_code == 400


class TestThePage:
    def test_shows_the_body_and_every_attempt(self, admin_client: Client) -> None:
        delivery = make_delivery(make_config(make_task()), number=3, through=7, attempts=2)
        add_attempt(delivery, 503, excerpt="come again", detail="answered 503")
        add_attempt(delivery, None, detail="no answer in 15 s", trigger=Trigger.OPERATOR)
        body = admin_client.get(page_of(delivery)).text
        for expected in ("3–7", "come again", "answered 503", "no answer in 15 s", "operator"):
            assert expected in body
        assert "TASK_STATE_WORKING" in body
        assert f"/task/{delivery.task_id}/change/?from=3#event-3" in body

    @rows("body", ["", "{", "[" * 5000 + "]" * 5000, '"\\ud800"', "null"], within=rolled_back)
    def test_shows_whatever_is_stored(self, admin_client: Client, body: str) -> None:
        delivery = make_delivery(make_config(make_task()), body=body)
        assert admin_client.get(page_of(delivery)).status_code == 200

    def test_cuts_a_body_of_megabytes(self, admin_client: Client) -> None:
        delivery = make_delivery(make_config(make_task()), body="x" * 2_000_000)
        answer = admin_client.get(page_of(delivery))
        assert len(answer.content) < 100_000
        assert "10000 shown" in answer.text

    def test_shows_a_body_that_is_stored_once_for_many(self, admin_client: Client) -> None:
        delivery = make_delivery(make_config(make_task()), body="")
        share_body(delivery, '{"kind":"shared"}')
        assert "shared" in admin_client.get(page_of(delivery)).text

    def test_tells_that_the_webhook_was_taken_away(self, sign_in: SignIn) -> None:
        client = sign_in("view_delivery", "change_delivery")
        delivery = make_delivery(make_config(make_task()), DeliveryStatus.CANCELLED)
        Delivery.objects.update(config=None)
        body = client.get(page_of(delivery)).text
        assert "deleted" in body
        assert "Send again" not in body


class TestPermissions:
    def test_viewing_is_enough_to_look_and_not_to_send(self, sign_in: SignIn) -> None:
        client = sign_in("view_delivery")
        dead = make_delivery(make_config(make_task("one")), DeliveryStatus.DEAD)
        pending = make_delivery(make_config(make_task("two")))
        assert client.get(LIST).status_code == 200
        for row, name, label in [(dead, "replay", "Send again"), (pending, "retry", "Try now")]:
            assert label not in client.get(page_of(row)).text
            assert client.post(f"{LIST}{row.pk}/{name}/", YES).status_code == 403
            for action in ("replay_selected", "retry_selected"):
                client.post(LIST, {"action": action, "_selected_action": row.pk, **YES})
        assert [status_of(dead), status_of(pending)] == [
            DeliveryStatus.DEAD,
            DeliveryStatus.PENDING,
        ]


@pytest.mark.django_db
class TestSending:
    def test_again_asks_first_then_does_it_and_is_logged(self, sign_in: SignIn) -> None:
        client = sign_in("view_delivery", "change_delivery")
        row = make_delivery(
            make_config(make_task()), DeliveryStatus.DEAD, attempts=10, reason="10 attempts"
        )
        assert "Send again" in client.get(page_of(row)).text
        asked = client.post(f"{LIST}{row.pk}/replay/")
        assert "1 delivery will be sent again" in asked.text
        assert status_of(row) == DeliveryStatus.DEAD
        done = client.post(f"{LIST}{row.pk}/replay/", YES, follow=True)
        assert "Will be sent again: 1." in done.text
        assert [status_of(row), row.attempts, row.replays] == [DeliveryStatus.PENDING, 0, 1]
        entry = LogEntry.objects.get()
        assert [entry.object_id, entry.user.get_username()] == [str(row.pk), "bob"]

    def test_is_asked_for_from_the_page_of_the_task(self, sign_in: SignIn) -> None:
        task = make_task()
        config = make_config(task)
        dead, waiting = make_delivery(config, DeliveryStatus.DEAD), make_delivery(config)
        taken = make_delivery(config, DeliveryStatus.DELIVERED)
        Delivery.objects.filter(pk=taken.pk).update(config=None)
        client = sign_in("view_task", "view_delivery")
        page = f"/admin/a2a_tasks/task/{task.pk}/change/?tab=webhooks"
        assert "/replay/" not in client.get(page).text
        User.objects.get().user_permissions.add(Permission.objects.get(codename="change_delivery"))
        body = client.get(page).text
        assert f'action="{LIST}{dead.pk}/replay/"' in body
        assert f'action="{LIST}{waiting.pk}/retry/"' in body
        assert f"{LIST}{taken.pk}/replay/" not in body

    def test_now_asks_first_then_does_it(self, sign_in: SignIn) -> None:
        client = sign_in("view_delivery", "change_delivery")
        at = timezone.now() + timedelta(hours=1)
        row = make_delivery(make_config(make_task()), attempts=3, next_at=at)
        assert "Try now" in client.get(page_of(row)).text
        assert "will be tried at once" in client.post(f"{LIST}{row.pk}/retry/").text
        row.refresh_from_db()
        assert row.next_at == at
        assert "Is tried now: 1." in client.post(f"{LIST}{row.pk}/retry/", YES, follow=True).text
        row.refresh_from_db()
        assert [row.next_at, row.trigger, row.attempts] == [None, Trigger.OPERATOR, 3]

    def test_tells_of_what_stands_against_it(self, admin_client: Client) -> None:
        now = timezone.now()
        off = make_receiver("https://off.example.com/", disabled_at=now, disabled_reason="gone")
        shut = make_receiver("https://shut.example.com/", probe_at=now + timedelta(hours=1))
        tired = give_up(make_receiver("https://tired.example.com/"))
        dead = make_delivery(make_config(make_task("one"), receiver=off), DeliveryStatus.DEAD)
        late = make_delivery(make_config(make_task("four"), receiver=tired), DeliveryStatus.DEAD)
        pending = make_delivery(make_config(make_task("five"), receiver=off))
        waits = make_delivery(make_config(make_task("two"), receiver=shut))
        came = make_delivery(
            make_config(make_task("three"), disabled_reason="410"), DeliveryStatus.DELIVERED
        )
        for row, name, warning in [
            (dead, "replay", "because an operator disabled the receiver: 1"),
            (late, "replay", "receiver or webhook that was disabled automatically: 1"),
            (pending, "retry", "because an operator disabled the receiver: 1"),
            (waits, "retry", "breaker of their receiver is open: 1"),
            (came, "replay", "receiver or webhook that was disabled automatically: 1"),
            (came, "replay", "will come twice: 1"),
        ]:
            assert warning in admin_client.post(f"{LIST}{row.pk}/{name}/").text

    def test_several_asks_once_and_tells_how_many(self, admin_client: Client) -> None:
        config = make_config(make_task())
        dead = [make_delivery(config, DeliveryStatus.DEAD) for _ in range(3)]
        pending = make_delivery(config)
        chosen = {"_selected_action": [row.pk for row in [*dead, pending]]}
        asked = admin_client.post(LIST, {"action": "replay_selected", **chosen})
        assert "3 deliveries will be sent again" in asked.text
        assert status_of(dead[0]) == DeliveryStatus.DEAD
        done = admin_client.post(LIST, {"action": "replay_selected", **chosen, **YES}, follow=True)
        assert "Will be sent again: 3." in done.text
        assert LogEntry.objects.count() == 3
        done = admin_client.post(LIST, {"action": "retry_selected", **chosen, **YES}, follow=True)
        assert "Is tried now: 4." in done.text

    def test_what_cannot_be_sent_again_is_left(self, admin_client: Client) -> None:
        row = make_delivery(make_config(make_task()))
        answer = admin_client.post(f"{LIST}{row.pk}/replay/", YES, follow=True)
        assert "Cannot be sent again: 1." in answer.text
        Delivery.objects.update(status=DeliveryStatus.DEAD, settled_at=timezone.now())
        answer = admin_client.post(f"{LIST}{row.pk}/retry/", YES, follow=True)
        assert "No longer waits, or may not be sent: 1." in answer.text
        assert not LogEntry.objects.exists()

    @pytest.mark.parametrize("name", ["replay", "retry"])
    def test_needs_a_post_and_its_token(self, admin_client: Client, name: str) -> None:
        row = make_delivery(make_config(make_task()), DeliveryStatus.DEAD)
        assert admin_client.get(f"{LIST}{row.pk}/{name}/").status_code == 405
        assert admin_client.post(f"{LIST}{row.pk + 1}/{name}/", YES).status_code == 404
        strict = Client(enforce_csrf_checks=True)
        strict.cookies = admin_client.cookies
        assert strict.post(f"{LIST}{row.pk}/{name}/", YES).status_code == 403
        assert status_of(row) == DeliveryStatus.DEAD
