"""Why a delivery waits: the first reason that holds, in a sentence, and each is explained to operators."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from a2a_console.diagnosis.delivery_waits import DeliveryFacts, Why, why
from a2a_push.breaker import Phase
from tests.support.rows import rows

pytestmark = pytest.mark.quick_on("sqlite")
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
SOON = NOW + timedelta(minutes=5)
PAST = NOW - timedelta(minutes=5)
#: The worst there is: every reason holds.
WORST = DeliveryFacts(
    attempts=2,
    reason="answered 503",
    next_at=SOON,
    behind=True,
    webhook_disabled="the receiver is gone (410)",
    worker="pusher-3",
    lease_until=SOON,
    receiver_disabled=True,
    disabled_reason="moved away",
    paused_until=SOON,
    phase=Phase.OPEN,
    breaker_reason="answered 500",
    probe_at=SOON,
)
#: What is mended, one after the other, and what it waits for then.
MENDED: list[tuple[dict[str, Any], str]] = [
    ({}, "The webhook is disabled: the receiver is gone (410)."),
    ({"webhook_disabled": ""}, "The receiver is disabled: moved away."),
    ({"receiver_disabled": False}, "An earlier notification of the webhook goes first."),
    ({"behind": False}, "It is being sent by pusher-3."),
    (
        {"lease_until": PAST},
        "The receiver asked to be left alone until 2026-11-21 12:05:00 (in 5 min).",
    ),
    (
        {"paused_until": PAST},
        "The breaker is open until 2026-11-21 12:05:00 (in 5 min): answered 500.",
    ),
    ({"probe_at": PAST}, "The receiver is being tried, one notification at a time: answered 500."),
    (
        {"phase": Phase.CLOSED},
        "The next attempt, 3 of 10, comes at 2026-11-21 12:05:00 (in 5 min): answered 503.",
    ),
    ({"next_at": PAST}, "It is due, and goes as soon as there is a place for it."),
]


class TestWhy:
    def test_says_the_first_reason_that_holds(self) -> None:
        situation = WORST
        for mended, sentence in MENDED:
            situation = replace(situation, **mended)
            assert why(situation, NOW) == sentence

    def test_has_a_sentence_where_nothing_is_known(self) -> None:
        assert why(DeliveryFacts(), NOW).startswith(Why.PLACE)

    @rows("beginning", Why)
    def test_each_is_explained_to_operators(self, beginning: Why) -> None:
        assert any(sentence.startswith(beginning) for _, sentence in MENDED)
        text = Path("docs/webhooks.md").read_text(encoding="utf-8")
        assert f"| {beginning} " in text
