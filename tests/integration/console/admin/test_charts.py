"""Charts: shapes stay inside their plane, and say what the numbers say."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_console.admin.widgets.charts import Chart, draw_bars

SINCE, STEP = datetime(2026, 11, 22, tzinfo=UTC), timedelta(minutes=30)


def counts(*series: Sequence[int]) -> Chart:
    return draw_bars("N", SINCE, STEP, dict(zip(("good", "bad", "quiet"), series, strict=False)))


class TestBars:
    def test_are_stacked_from_the_ground(self) -> None:
        good, bad = counts([3], [1]).bars
        assert (good.y, good.height, good.label) == (40, 60, "good")
        assert (bad.y, bad.height, bad.label) == (20, 20, "bad")

    def test_say_their_number_and_moment(self) -> None:
        (bar,) = counts([0, 7]).bars
        assert bar.title.endswith("00:30:00: 7 good")

    @pytest.mark.parametrize(
        ("most", "top"), [(0, "1"), (1, "1"), (3, "5"), (5, "5"), (6, "10"), (1001, "2,000")]
    )
    def test_stand_below_a_round_number(self, most: int, top: str) -> None:
        assert counts([most]).heights[0] == top

    @pytest.mark.parametrize(("most", "middle"), [(0, ""), (2, "1"), (3, ""), (6, "5"), (50, "25")])
    def test_their_middle_is_named_if_it_is_a_count(self, most: int, middle: str) -> None:
        assert counts([most]).heights[1] == middle

    @given(st.lists(st.tuples(*[st.integers(0, 10**7)] * 3), min_size=1, max_size=60))
    def test_stay_inside(self, slots: list[tuple[int, int, int]]) -> None:
        chart = counts(*zip(*slots, strict=True))
        for bar in chart.bars:
            assert bar.x >= -0.01
            assert bar.x + bar.width <= 100.01
            assert bar.y >= -0.01
            assert bar.y + bar.height <= 100.01

    def test_leave_slots_with_nothing_out_of_the_table(self) -> None:
        ((at, values),) = counts([0, 2], [0, 1]).rows
        assert at.endswith("00:30:00")
        assert values == (2, 1)

    @pytest.mark.parametrize("series", [[], [[], []]])
    def test_of_nothing_are_none(self, series: list[list[int]]) -> None:
        assert not counts(*series).bars
        assert not counts(*series).rows
