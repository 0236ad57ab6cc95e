"""Figures of one receiver for its page: the deliveries of a day, its newest attempts, and its state in words."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from django.utils import timezone

from a2a_console.admin.widgets.charts import Chart
from a2a_console.statistics.counts import PERIODS, TooMany, limit_reads
from a2a_console.statistics.webhooks import report_webhooks
from a2a_console.times import moment, took
from a2a_console.webhooks.receiver_health import Word, describe_health
from a2a_push.models import Attempt, Delivery, Receiver
from a2a_push.store.receivers import read

__all__ = ["AttemptFigures", "describe_breaker", "draw_deliveries", "read_attempts"]

#: The numbers of newest deliveries whose attempts are read, of attempts of which figures are made, and of those shown.
DELIVERIES, SAMPLE, SHOWN = 100, 200, 15
SENTENCES = {
    Word.DISABLED: "Nothing is sent until somebody enables it: {why}.",
    Word.OPEN: "The breaker is open after {failures} failures in a row ({why}): nothing is sent until {until}; then one notification tries.",
    Word.HALF_OPEN: "The breaker is half open: one notification at a time tries whether it has recovered.",
    Word.PAUSED: "It asked to be left alone until {until}.",
    Word.GONE: "It answered 410 (gone), so the webhooks that lead to it are disabled.",
    Word.CLOSED: "The breaker is closed: every notification is sent as it comes.",
}


@dataclass(frozen=True, slots=True)
class AttemptFigures:
    """The newest attempts, and what most of them took."""

    shown: Sequence[Attempt]
    count: int
    succeeded: str
    p50: str
    p95: str


def describe_breaker(row: Receiver) -> str:
    """Return the state of the receiver in a sentence."""
    health = describe_health(row)
    about = {
        "why": health.why or "without a reason",
        "failures": read(row).in_a_row,
        "until": moment(health.until),
    }
    return SENTENCES[health.word].format(**about)


def draw_deliveries(row: Receiver) -> Chart | None:
    """Return the chart of the deliveries of a day; None if it takes too long to count them."""
    period = PERIODS["day"]
    since = period.begin(timezone.now())
    with suppress(TooMany), limit_reads():
        found = report_webhooks(period, since, lambda rows, _: rows.filter(receiver=row.pk))
        return Chart("Deliveries of a day", since, period.step, found.series)
    return None


def read_attempts(row: Receiver) -> AttemptFigures:
    """Return the newest attempts at the newest deliveries to the receiver."""
    newest = Delivery.objects.filter(receiver=row.pk).order_by("-pk").values_list("pk", flat=True)
    rows = Attempt.objects.filter(delivery__in=list(newest[:DELIVERIES])).order_by("-pk")
    found = list(rows.select_related("delivery").defer("delivery__body", "detail")[:SAMPLE])
    spans = sorted(one.seconds for one in found)
    share = 100 * sum(not one.fault for one in found) / len(found) if found else 0
    middle, high = (
        took(spans[int(part * (len(spans) - 1))]) if spans else "" for part in (0.5, 0.95)
    )
    return AttemptFigures(
        found[:SHOWN], len(found), f"{share:.1f} %" if found else "", middle, high
    )
