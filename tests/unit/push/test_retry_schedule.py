"""What follows from a refused attempt: the schedule of Standard Webhooks, what receivers ask for, and the ends."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_push.retry_schedule import (
    DELAYS,
    JITTER,
    MAX_ASKED_SECONDS,
    Disable,
    GiveUp,
    Retry,
    decide,
    decide_uncounted,
    read_retry_after,
)
from tests.support.rows import rows

NOW = 1_700_000_000.0
MOMENT = datetime.fromtimestamp(NOW, tz=UTC)
LAST = len(DELAYS)


@dataclass(frozen=True)
class Refused:
    """An attempt that failed."""

    status: int | None = 500
    retry_after: str | float | None = None


chances = st.floats(0, 1, exclude_max=True)
attempts = st.integers(1, LAST - 1)
answers = st.sampled_from([None, 100, 204, 301, 308, 400, 401, 403, 404, 429, 500, 502, 503, 504])


def again(attempt: int, refused: Refused, chance: float = 0.0, scale: float = 1.0) -> Retry:
    """The decision, which is to try again."""
    found = decide(attempt, refused, NOW, chance, scale=scale)
    assert isinstance(found, Retry)
    return found


def http_date(**later: float) -> str:
    """A moment from now as headers have it."""
    return format_datetime(MOMENT + timedelta(**later), usegmt=True)


class TestTheSchedule:
    def test_spans_75_hours_35_minutes_and_5_seconds(self) -> None:
        assert sum(DELAYS) == (75 * 60 + 35) * 60 + 5
        assert len(DELAYS) == 10

    def test_grows(self) -> None:
        assert list(DELAYS) == sorted(set(DELAYS))

    def test_without_chance_is_that_of_the_specification(self) -> None:
        waits = [again(attempt, Refused()).at - NOW for attempt in range(1, LAST)]
        hours = [2 * 3600, 5 * 3600, 10 * 3600, 14 * 3600, 20 * 3600, 24 * 3600]
        assert waits == [5, 300, 1800, *hours]

    @given(attempts, answers, chances)
    def test_is_only_made_earlier_by_chance_and_by_a_tenth_at_most(
        self, attempt: int, status: int | None, chance: float
    ) -> None:
        wait = again(attempt, Refused(status), chance).at - NOW
        assert DELAYS[attempt] * (1 - JITTER) - 0.001 <= wait <= DELAYS[attempt]

    @given(st.lists(chances, min_size=LAST, max_size=LAST), chances)
    def test_ends_in_time_and_never_waits_less_than_before(
        self, luck: list[float], last: float
    ) -> None:
        """A receiver that never answers, each attempt made when it is due."""
        now, waits = NOW, []
        for attempt in range(1, LAST):
            found = decide(attempt, Refused(None), now, luck[attempt])
            assert isinstance(found, Retry)
            waits.append(found.at - now)
            now = found.at
        assert now - NOW <= sum(DELAYS)
        assert waits == sorted(waits)
        assert isinstance(decide(LAST, Refused(None), now, last), GiveUp)

    @given(attempts, chances, st.sampled_from([0.0, 0.0001, 0.5]))
    def test_is_scaled_as_a_whole(self, attempt: int, chance: float, scale: float) -> None:
        wait = again(attempt, Refused(), chance, scale).at - NOW
        assert wait == pytest.approx((again(attempt, Refused(), chance).at - NOW) * scale, abs=1e-5)

    @rows("attempt", [0, -1])
    def test_begins_with_the_first_attempt(self, attempt: int) -> None:
        with pytest.raises(ValueError, match="first"):
            decide(attempt, Refused(), NOW, 0.0)


class TestTheEnds:
    @rows("attempt", [LAST, LAST + 1, 1000])
    def test_after_ten_attempts_is_given_up(self, attempt: int) -> None:
        assert decide(attempt, Refused(), NOW, 0.0) == GiveUp("10 attempts")

    @given(st.integers(1, 20), chances)
    def test_gone_disables_at_any_time(self, attempt: int, chance: float) -> None:
        assert isinstance(decide(attempt, Refused(410, "5"), NOW, chance), Disable)

    @given(attempts, answers, chances)
    def test_nothing_else_ends_before(
        self, attempt: int, status: int | None, chance: float
    ) -> None:
        again(attempt, Refused(status), chance)


class TestABusyReceiver:
    @rows("status", [429, 502, 503, 504])
    def test_is_left_alone_altogether(self, status: int) -> None:
        assert again(1, Refused(status)).pause_until == NOW + 5

    def test_is_left_alone_for_as_long_as_it_asks(self) -> None:
        assert again(1, Refused(503, "60")).pause_until == NOW + 60

    @given(attempts, chances)
    def test_is_not_left_alone_for_longer_because_one_notification_has_failed_often(
        self, attempt: int, chance: float
    ) -> None:
        assert again(attempt, Refused(504), chance).pause_until == NOW + 5
        assert again(attempt, Refused(504, "60"), chance).pause_until == NOW + 60

    @rows("status", [None, 302, 400, 404, 500])
    def test_is_none_that_only_fails(self, status: int | None) -> None:
        assert again(1, Refused(status)).pause_until is None


class TestRetryAfter:
    @rows(
        ("asked", "expected"),
        [
            ("120", 120),
            ("0120", 120),
            (" 7200 ", 7200),
            (90.5, 90.5),
            (http_date(minutes=10), 600),
            ("Wed, 15 Nov 2023 00:23:20 +0200", 600),
            ("Tuesday, 14-Nov-23 22:23:20 GMT", 600),
            ("Tue Nov 14 22:23:20 2023", 600),
        ],
    )
    def test_makes_later(self, asked: str | float, expected: float) -> None:
        assert again(1, Refused(503, asked)).at == NOW + expected

    @rows("asked", ["0", "1", "4", 0.0, http_date(seconds=3)])
    def test_never_makes_earlier(self, asked: str | float) -> None:
        assert again(1, Refused(503, asked)).at == NOW + 5
        assert again(5, Refused(503, asked)).at == NOW + DELAYS[5]

    @rows(
        "asked",
        [
            "315360000",
            "9" * 400,
            http_date(days=3650),
            "Fri, 31 Dec 9999 23:59:59 GMT",
            float("inf"),
            1e300,
        ],
    )
    def test_is_not_obeyed_for_ten_years(self, asked: str | float) -> None:
        assert again(1, Refused(429, asked)).at == NOW + MAX_ASKED_SECONDS
        assert again(1, Refused(429, asked), scale=0.001).at == NOW + MAX_ASKED_SECONDS * 0.001

    @rows(
        "asked",
        [
            "",
            "soon",
            "-1",
            "-315360000",
            "1.5",
            "1e3",
            "+1",
            "٣",
            "１２",
            "0x10",
            "120, 60",
            -5.0,
            float("nan"),
            float("-inf"),
            http_date(days=-1),
            "Fri, 32 Foo 2026 99:99:99 GMT",
            "Fri, 15 Jan 99999 08:00:00 GMT",
            "Mon, 01 Jan 0001 00:00:00 +2359",
            "\x00",
        ],
    )
    def test_that_asks_for_nothing_sensible_is_as_good_as_none(self, asked: str | float) -> None:
        assert read_retry_after(asked, NOW) == 0
        assert again(1, Refused(503, asked)) == again(1, Refused(503))

    def test_without_a_zone_is_in_utc(self) -> None:
        assert read_retry_after(MOMENT.strftime("%a, %d %b %Y %H:%M:%S -0000"), NOW - 60) == 60

    @given(st.text() | st.floats() | st.none(), attempts, chances)
    def test_whatever_it_is_keeps_the_wait_in_bounds(
        self, asked: str | float | None, attempt: int, chance: float
    ) -> None:
        wait = again(attempt, Refused(503, asked), chance).at - NOW
        assert DELAYS[attempt] * (1 - JITTER) - 0.001 <= wait <= MAX_ASKED_SECONDS


class TestAFaultOfTheHostItself:
    def test_is_no_attempt_and_it_is_sent_in_a_minute(self) -> None:
        waits = decide_uncounted(NOW - 3600, NOW)
        assert waits is not None
        assert waits.at == NOW + 60

    def test_counts_once_it_has_lasted_as_long_as_all_attempts(self) -> None:
        assert decide_uncounted(NOW - sum(DELAYS) + 1, NOW) is not None
        assert decide_uncounted(NOW - sum(DELAYS), NOW) is None

    def test_is_scaled_like_the_schedule(self) -> None:
        waits = decide_uncounted(NOW, NOW, scale=0.001)
        assert waits is not None
        assert waits.at == pytest.approx(NOW + 0.06)
        assert decide_uncounted(NOW - sum(DELAYS) * 0.001, NOW, scale=0.001) is None
