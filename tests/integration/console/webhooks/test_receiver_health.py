"""How a receiver stands, from its row alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from a2a_console.webhooks.receiver_health import ReceiverHealth, Word, describe_health
from a2a_push.breaker import Breaker, Phase, disable
from a2a_push.models import Receiver
from a2a_tasks.protocol.jsontext import write

NOW = datetime.now(UTC)
SOON, PAST = NOW + timedelta(days=1), NOW - timedelta(days=1)


def at(breaker: Breaker | None = None, **columns: Any) -> ReceiverHealth:
    text = write(breaker or Breaker()).decode()
    return describe_health(Receiver(address="https://hooks.example.com/", breaker=text, **columns))


class TestStanding:
    def test_of_one_nobody_has_met_is_well(self) -> None:
        assert at() == ReceiverHealth(word=Word.CLOSED)

    def test_says_until_when_an_open_breaker_lets_nothing_through_and_why(self) -> None:
        opened = at(Breaker(phase=Phase.OPEN, reason="answered 500"), probe_at=SOON)
        assert opened == ReceiverHealth(word=Word.OPEN, why="answered 500", until=SOON)

    def test_of_one_that_is_tried_has_no_end(self) -> None:
        probed = at(Breaker(phase=Phase.HALF_OPEN, reason="answered 500"), probe_at=SOON)
        assert probed == ReceiverHealth(word=Word.HALF_OPEN, why="answered 500")

    @pytest.mark.parametrize(("until", "word"), [(SOON, Word.PAUSED), (PAST, Word.CLOSED)])
    def test_knows_when_a_pause_is_over(self, until: datetime, word: Word) -> None:
        assert at(paused_until=until).word is word

    def test_of_one_that_answered_410_last_is_gone_until_another_webhook_there_is_delivered(
        self,
    ) -> None:
        gone = at(well=True, last_failure_at=NOW, last_success_at=PAST)
        assert gone == ReceiverHealth(
            word=Word.GONE, why="answered 410, which disables the webhook"
        )
        assert at(well=True, last_failure_at=NOW, last_success_at=SOON).word is Word.CLOSED

    def test_of_a_disabled_one_is_that_whatever_else_is(self) -> None:
        off = at(
            disable(Breaker(), "x"),
            disabled_at=PAST,
            disabled_reason="moved away",
            probe_at=SOON,
            paused_until=SOON,
        )
        assert off == ReceiverHealth(word=Word.DISABLED, why="moved away")
