"""`manage.py webhooks`: what is dead is listed, and sent again as far as it is meant."""

from __future__ import annotations

import io
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from a2a_console.management.commands import webhooks
from a2a_push.models import Delivery, DeliveryStatus
from a2a_push.store import switches
from a2a_push.store.delivery_selection import DeliverySelection
from a2a_push.store.replays import replay
from tests.support.console.admin.rows import make_task
from tests.support.push.rows import give_up, make_config, make_delivery, make_receiver
from tests.support.rows import rolled_back, rows

pytestmark = pytest.mark.django_db


class Terminal(io.StringIO):
    """Somebody looks."""

    def isatty(self) -> bool:
        return True


def said(*words: str, out: io.StringIO | None = None) -> str:
    out = out or io.StringIO()
    call_command("webhooks", *words, stdout=out, no_color=True)
    return out.getvalue()


def pending() -> set[str]:
    rows = Delivery.objects.filter(status=DeliveryStatus.PENDING)
    return set(rows.values_list("webhook_id", flat=True))


@pytest.fixture
def dead() -> Delivery:
    row = make_delivery(make_config(make_task("task-1")), DeliveryStatus.DEAD, reason="10 attempts")
    Delivery.objects.filter(pk=row.pk).update(created_at=timezone.now() - timedelta(hours=3))
    return row


@pytest.fixture
def other() -> Delivery:
    """One that was given up just now, of another agent, receiver and task."""
    config = make_config(
        make_task("task-2", agent="tables"), receiver=make_receiver("https://b.example/x")
    )
    return make_delivery(config, DeliveryStatus.DEAD, reason="the receiver is gone (410)")


class TestList:
    def test_lists_the_dead_the_oldest_first(self, dead: Delivery, other: Delivery) -> None:
        make_delivery(make_config(make_task("task-3")), DeliveryStatus.DELIVERED)
        lines = said("list").splitlines()
        assert [line.split()[0] for line in lines] == [dead.webhook_id, other.webhook_id, "Dead:"]
        assert "task-1" in lines[0]
        assert "10 attempts" in lines[0]
        assert "https://b.example/x" in lines[1]
        assert said("list", "--lines", "1").splitlines()[-1] == "Dead: 2, shown: 1"

    def test_shows_nothing_that_a_terminal_obeys(self) -> None:
        make_delivery(make_config(make_task("a\x1b[2Jb")), DeliveryStatus.DEAD)
        assert "\x1b" not in said("list")


class TestReplay:
    @rows(
        "words",
        [
            ("--task", "task-2"),
            ("--agent", "tables"),
            ("--receiver", "https://b.example/x?key=1"),
            ("--since", (timezone.now() - timedelta(hours=1)).isoformat()),
        ],
        within=rolled_back,
    )
    def test_sends_what_is_narrowed_to(
        self, dead: Delivery, other: Delivery, words: tuple[str, ...]
    ) -> None:
        assert said("replay", *words, "--dry-run") == "Would be sent again: 1\n"
        assert pending() == set()
        assert said("replay", *words) == "Will be sent again: 1\n"
        assert pending() == {other.webhook_id}

    def test_sends_what_was_made_before(self, dead: Delivery, other: Delivery) -> None:
        until = (timezone.now() - timedelta(hours=1)).isoformat()
        assert said("replay", "--until", until) == "Will be sent again: 1\n"
        assert pending() == {dead.webhook_id}

    def test_takes_a_date_for_its_beginning(self, dead: Delivery) -> None:
        tomorrow = (timezone.localdate() + timedelta(days=1)).isoformat()
        assert said("replay", "--since", tomorrow) == "Will be sent again: 0\n"

    def test_sends_all_only_if_told_so(self, dead: Delivery, other: Delivery) -> None:
        with pytest.raises(CommandError, match="Say which"):
            said("replay")
        assert said("replay", "--all") == "Will be sent again: 2\n"

    def test_sends_by_id_whatever_became_of_it_and_tells_of_what_cannot_be(
        self, dead: Delivery
    ) -> None:
        came = make_delivery(make_config(make_task("task-3")), DeliveryStatus.DELIVERED)
        waits = make_delivery(make_config(make_task("task-4")))
        text = said("replay", came.webhook_id, waits.webhook_id, "msg_unknown")
        assert text.splitlines() == [
            "Will be sent again: 1",
            "Left alone, being pending, without a webhook, held back, or unknown: 2",
        ]
        assert pending() == {came.webhook_id, waits.webhook_id}

    def test_tells_beforehand_and_afterwards_what_is_held_back_and_what_is_on_trial(
        self, dead: Delivery, other: Delivery
    ) -> None:
        switches.disable(dead.receiver_id, "they asked for it")
        give_up(other.receiver)
        told = [
            "Of these to receivers or webhooks that were given up, which are tried again: 1",
            "Held back, because an operator disabled the endpoint: 1",
        ]
        assert said("replay", "--all", "--dry-run").splitlines() == [
            "Would be sent again: 1",
            *told,
        ]
        assert said("replay", "--all").splitlines() == [
            "Will be sent again: 1",
            "Left alone, being pending, without a webhook, held back, or unknown: 1",
            *told,
        ]
        assert pending() == {other.webhook_id}

    def test_sends_delivered_ones_if_told_so(self, dead: Delivery) -> None:
        make_delivery(make_config(make_task("task-3")), DeliveryStatus.DELIVERED)
        assert said("replay", "--all", "--also-delivered") == "Will be sent again: 2\n"

    def test_leaves_alone_what_has_no_webhook_any_more(self, dead: Delivery) -> None:
        Delivery.objects.update(config=None)
        assert said("replay", "--all") == "Will be sent again: 0\n"

    @rows("text", ["yesterday", "2026-13-01", "2026-11-21T25:00"], within=rolled_back)
    def test_refuses_what_is_no_time(self, text: str) -> None:
        with pytest.raises(CommandError, match="is no time"):
            said("replay", "--since", text)

    def test_goes_in_portions_and_shows_how_far_it_is(
        self, dead: Delivery, other: Delivery, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(webhooks, "SLICE", 1)
        shown = said("replay", "--all", out=Terminal())
        assert "\r1 of 2 deliveries\r2 of 2 deliveries" in shown


class TestChosen:
    def test_is_what_a_span_replays(self, dead: Delivery, other: Delivery) -> None:
        now = timezone.now()
        day = timedelta(days=1)
        assert DeliverySelection(since=now - day, until=now).keys()[:1] == [dead.pk]
        older = DeliverySelection(since=now - day, until=now - timedelta(hours=1))
        assert replay(older.keys()) == 1
        assert pending() == {dead.webhook_id}

    def test_is_narrowed_by_no_ids_to_nothing(self, dead: Delivery) -> None:
        assert DeliverySelection(ids=[]).keys() == []

    def test_is_narrowed_by_receiver_and_webhook(self, dead: Delivery, other: Delivery) -> None:
        assert DeliverySelection(receiver=other.receiver_id).keys() == [other.pk]
        assert DeliverySelection(config=dead.config_id).keys() == [dead.pk]
