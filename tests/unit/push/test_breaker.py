"""The circuit breaker before a receiver: examples of every edge, and its laws on any history."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from a2a_push.breaker import (
    DEFAULT,
    ORDINARY,
    Breaker,
    BreakerPolicy,
    Phase,
    ask,
    disable,
    record_failure,
    record_success,
    reopen,
)

NOW = 1_700_000_000.0
DAY = 86_400.0


def after(*outcomes: bool, breaker: Breaker | None = None, every: float = 1.0) -> Breaker:
    """The breaker after ordinary attempts, one each `every` seconds: True for a success."""
    found = breaker or Breaker()
    for number, well in enumerate(outcomes):
        now = NOW + number * every
        found = record_success(found, now, 0) if well else record_failure(found, now, 0, "500")
    return found


def opened() -> Breaker:
    """One that just opened, at NOW + 9."""
    found = after(*[False] * 10)
    assert found.phase is Phase.OPEN
    return found


def probed(breaker: Breaker, now: float, *, well: bool) -> Breaker:
    """After a probe that is let through and ends at once."""
    asked, permit = ask(breaker, now)
    assert permit
    return record_success(asked, now, permit) if well else record_failure(asked, now, permit, "500")


class TestClosed:
    def test_lets_everything_through(self) -> None:
        breaker = after(True, False, True)
        assert ask(breaker, NOW) == (breaker, ORDINARY)

    def test_opens_at_the_tenth_failure_in_a_row(self) -> None:
        assert after(*[False] * 9).phase is Phase.CLOSED
        assert after(*[False] * 10).phase is Phase.OPEN

    def test_opens_at_ten_in_a_row_however_slowly_they_come(self) -> None:
        assert after(*[False] * 9, every=3600).phase is Phase.CLOSED
        assert after(*[False] * 10, every=3600).phase is Phase.OPEN

    def test_opens_when_seven_of_ten_failed(self) -> None:
        mixed = [True, False, False, True, False, False, True, False, False]
        assert after(*mixed).phase is Phase.CLOSED
        assert after(*mixed, False).phase is Phase.OPEN

    def test_stays_when_six_of_ten_failed(self) -> None:
        mixed = [True, False, False, True, False, False, True, False, False, True]
        assert after(*mixed).phase is Phase.CLOSED

    def test_forgets_what_was_before_the_window(self) -> None:
        bad = after(*[False, False, True] * 2, False, False, False)
        late = NOW + DEFAULT.window + 60
        assert record_failure(bad, NOW + 10, 0, "500").phase is Phase.OPEN
        assert record_failure(bad, late, 0, "500").phase is Phase.CLOSED

    def test_does_not_mind_a_clock_that_goes_back(self) -> None:
        breaker = after(*[False] * 5)
        for _ in range(5):
            breaker = record_failure(breaker, NOW - 7200, 0, "500")
        assert breaker.phase is Phase.OPEN

    def test_says_why_it_opened(self) -> None:
        assert opened().reason == "500"


class TestOpen:
    def test_lets_nothing_through_until_its_time_is_up(self) -> None:
        breaker = opened()
        assert breaker.until == NOW + 9 + 30
        assert ask(breaker, breaker.until - 0.1) == (breaker, None)
        assert ask(breaker, breaker.until)[1] == 1

    def test_stays_whatever_older_attempts_bring(self) -> None:
        for late in (
            record_success(opened(), NOW + 10, 0),
            record_failure(opened(), NOW + 10, 0, "500"),
        ):
            assert late.phase is Phase.OPEN
            assert late.until == opened().until

    def test_lasts_twice_as_long_each_time_up_to_an_hour(self) -> None:
        breaker, waits = opened(), []
        for _ in range(10):
            now = breaker.until
            breaker = probed(breaker, now, well=False)
            waits.append(breaker.until - now)
        assert waits == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600, 3600]


class TestHalfOpen:
    def test_lets_one_through_at_a_time(self) -> None:
        breaker, permit = ask(opened(), NOW + 60)
        assert (breaker.phase, permit) == (Phase.HALF_OPEN, 1)
        assert ask(breaker, NOW + 60.1) == (breaker, None)
        told = record_success(breaker, NOW + 61, 1)
        assert ask(told, NOW + 61)[1] == 2

    def test_closes_after_five_successes(self) -> None:
        breaker = opened()
        for number in range(5):
            assert breaker.phase is not Phase.CLOSED
            breaker = probed(breaker, NOW + 60 + number, well=True)
        assert breaker == Breaker(probe=5)

    def test_opens_at_one_failure_and_begins_to_count_anew(self) -> None:
        breaker = opened()
        for number in range(4):
            breaker = probed(breaker, NOW + 60 + number, well=True)
        breaker = probed(breaker, NOW + 70, well=False)
        assert breaker.phase is Phase.OPEN
        assert breaker.successes == 0

    def test_does_not_wait_for_ever_for_a_probe_nobody_tells_of(self) -> None:
        breaker, _ = ask(opened(), NOW + 60)
        assert ask(breaker, NOW + 60 + DEFAULT.probe_for - 0.1)[1] is None
        assert ask(breaker, NOW + 60 + DEFAULT.probe_for)[1] == 2

    def test_is_not_moved_by_attempts_that_are_not_its_probe(self) -> None:
        breaker, _ = ask(opened(), NOW + 60)
        late = [
            record_success(breaker, NOW + 61, ORDINARY),
            record_failure(breaker, NOW + 61, ORDINARY, "500"),
        ]
        breaker, _ = ask(breaker, NOW + 200)
        late.append(record_success(breaker, NOW + 201, 1))
        for found in late:
            assert found.phase is Phase.HALF_OPEN
            assert found.successes == 0
            assert ask(found, NOW + 202 if found.probe == 2 else NOW + 62)[1] is None


class TestDisabled:
    def test_comes_after_five_days_without_a_success(self) -> None:
        breaker = opened()
        while breaker.phase is not Phase.DISABLED:
            last = breaker.until
            breaker = probed(breaker, last, well=False)
        assert 5 * DAY <= last - NOW < 5 * DAY + 3600
        assert breaker.reason == "no success for 5.0 days; last: 500"

    def test_does_not_come_to_a_receiver_that_succeeded_meanwhile(self) -> None:
        breaker = opened()
        while breaker.until < NOW + 4 * DAY:
            breaker = probed(breaker, breaker.until, well=False)
        breaker = probed(breaker, breaker.until, well=True)
        while breaker.until < NOW + 8 * DAY:
            breaker = probed(breaker, max(breaker.until, NOW + 4 * DAY + 3600), well=False)
        assert breaker.phase is Phase.OPEN

    def test_does_not_come_to_a_receiver_that_was_hardly_tried(self) -> None:
        assert after(False, False, every=6 * DAY).phase is Phase.CLOSED

    def test_lets_nothing_through_and_keeps_its_reason(self) -> None:
        breaker = disable(opened(), "the receiver is gone (410)")
        assert ask(breaker, NOW + 100 * DAY) == (breaker, None)
        for late in (
            record_success(breaker, NOW + 1, 0),
            record_failure(breaker, NOW + 9 * DAY, 0, "500"),
        ):
            assert late.phase is Phase.DISABLED
            assert late.reason == "the receiver is gone (410)"


class TestTriedAgain:
    def given_up(self) -> Breaker:
        """One that failed for six days."""
        found = record_failure(Breaker(failing_since=NOW - 6 * DAY, in_a_row=9), NOW, 0, "500")
        assert (found.phase, found.given_up) == (Phase.DISABLED, True)
        return found

    def test_is_trusted_again_with_the_first_success(self) -> None:
        breaker = probed(reopen(self.given_up()), NOW + 1, well=True)
        assert (breaker.phase, breaker.failing_since) == (Phase.HALF_OPEN, None)
        breaker = probed(breaker, NOW + 2, well=False)
        assert (breaker.phase, breaker.failing_since) == (Phase.OPEN, NOW + 2)

    def test_is_given_up_again_after_ten_more_failures(self) -> None:
        breaker, tried = reopen(self.given_up()), 0
        while breaker.phase is not Phase.DISABLED:
            breaker, tried = probed(breaker, max(NOW, breaker.until), well=False), tried + 1
        assert (tried, breaker.given_up) == (10, True)
        assert "no success for 6." in breaker.reason

    def test_is_not_moved_by_what_was_under_way_when_it_was_given_up(self) -> None:
        open_since = NOW - 6 * DAY
        asked, late = ask(opened(), NOW + 1000)
        assert late
        worse = msgspec.structs.replace(asked, failing_since=open_since, in_a_row=9)
        breaker = reopen(record_failure(worse, NOW + 1001, 0, "500"))
        assert record_failure(breaker, NOW + 1002, late, "500").phase is Phase.HALF_OPEN

    def test_is_not_what_somebody_switched_off(self) -> None:
        assert not disable(Breaker(), "they asked for it").given_up


class TestARow:
    @given(st.lists(st.booleans(), max_size=30))
    def test_holds_it_as_json(self, outcomes: list[bool]) -> None:
        breaker = after(*outcomes)
        text = msgspec.json.encode(breaker)
        assert msgspec.json.decode(text, type=Breaker) == breaker
        assert len(text) < 512

    def test_is_empty_for_who_was_never_met(self) -> None:
        assert msgspec.json.encode(Breaker()) == b"{}"


class TestAPolicy:
    def test_is_scaled_in_its_times_only(self) -> None:
        assert DEFAULT.scale(0.5) == BreakerPolicy(
            window=150.0, open_for=15.0, longest_open=1800.0, probe_for=30.0, patience=2.5 * DAY
        )


class Histories(RuleBasedStateMachine):
    """Any attempts, at any times, ending in any order, some never."""

    def __init__(self) -> None:
        super().__init__()
        self.breaker, self.now = Breaker(), NOW
        self.under_way: list[tuple[int, float]] = []

    @rule(seconds=st.sampled_from([0.0, 0.5, 5.0, 31.0, 61.0, 400.0, 3700.0, DAY]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def somebody_asks(self) -> None:
        before = self.breaker
        self.breaker, permit = ask(before, self.now)
        if permit is None:
            assert self.breaker == before
            assert before.phase in {Phase.DISABLED, Phase.OPEN, Phase.HALF_OPEN}
            return
        probing = [begun for held, begun in self.under_way if held and held == before.probe]
        if before.phase is Phase.HALF_OPEN and probing:
            assert self.now - probing[0] >= DEFAULT.probe_for
        self.under_way.append((permit, self.now))

    @precondition(lambda self: self.under_way)
    @rule(which=st.integers(0, 1000), well=st.booleans())
    def an_attempt_ends(self, which: int, well: bool) -> None:
        permit, _ = self.under_way.pop(which % len(self.under_way))
        before = self.breaker
        if well:
            self.breaker = record_success(before, self.now, permit)
            assert self.breaker.in_a_row == 0
        else:
            self.breaker = record_failure(before, self.now, permit, "500")
            assert self.breaker.in_a_row == before.in_a_row + 1
            assert self.breaker.phase is not Phase.HALF_OPEN or permit != before.probe
        if before.phase is Phase.OPEN and self.breaker.phase is not Phase.DISABLED:
            assert (self.breaker.phase, self.breaker.until) == (Phase.OPEN, before.until)
        if before.phase is Phase.DISABLED:
            assert self.breaker.phase is Phase.DISABLED

    @precondition(lambda self: self.breaker.phase is Phase.DISABLED)
    @rule()
    def somebody_enables(self) -> None:
        self.breaker, self.under_way = Breaker(), []

    @precondition(lambda self: self.breaker.given_up)
    @rule()
    def somebody_sends_something_again(self) -> None:
        self.breaker = reopen(self.breaker)
        assert self.breaker.phase is Phase.HALF_OPEN
        assert ask(self.breaker, self.now)[1] is not None

    @invariant()
    def closed_never_holds_what_should_have_opened_it(self) -> None:
        if self.breaker.phase is Phase.CLOSED:
            assert self.breaker.in_a_row < DEFAULT.in_a_row
        else:
            assert self.breaker.reason
        assert not self.breaker.given_up or self.breaker.phase is Phase.DISABLED
        assert len(self.breaker.slots) <= DEFAULT.slots
        assert self.breaker.successes < DEFAULT.successes_to_close


TestHistories = Histories.TestCase
