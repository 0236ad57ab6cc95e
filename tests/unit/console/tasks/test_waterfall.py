"""The axis of a waterfall: moments keep their order, and long idle times take little room."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_console.admin.tasks.waterfall import FOLDED, WIDTH, Axis

BEGAN = datetime(2026, 11, 29, tzinfo=UTC)


def at(seconds: float) -> datetime:
    """So many seconds after the begin."""
    return BEGAN + timedelta(seconds=seconds)


def axis_of(length: float, *idle: tuple[float, float]) -> Axis:
    """The axis of a task of this length that was idle then."""
    axis = Axis(BEGAN, at(length))
    axis.fold([(at(begin), at(end)) for begin, end in idle])
    return axis


@given(st.lists(st.floats(0, 10_000), min_size=3, max_size=12, unique=True), st.floats(0, 1))
def test_a_moment_that_is_later_stands_further_right(moments: list[float], part: float) -> None:
    first, *others = sorted(moments)
    idle = list(zip(others[::2], others[1::2], strict=False))
    axis = axis_of(max(moments) + 1, *idle)
    places = [axis.locate(at(moment)) for moment in sorted([first, *others, part * others[-1]])]
    assert places == sorted(places)
    assert axis.locate(BEGAN) == 0
    assert axis.locate(axis.ended) == pytest.approx(WIDTH)


def test_a_long_idle_time_is_folded_and_leaves_its_room_to_the_work() -> None:
    axis = axis_of(1000, (1, 999))
    assert axis.folds == [(at(1), at(999))]
    assert axis.locate(at(1)) == pytest.approx((WIDTH - FOLDED) / 2)
    assert axis.locate(at(999)) - axis.locate(at(1)) == pytest.approx(FOLDED)


def test_an_idle_time_is_long_beside_what_is_left_when_longer_ones_are_folded() -> None:
    assert len(axis_of(1000, (1, 900), (901, 950), (951, 953)).folds) == 2


def test_a_short_idle_time_stays() -> None:
    assert not axis_of(10, (1, 2.5)).folds
