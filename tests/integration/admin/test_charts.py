"""Charts: shapes stay inside their plane, and say what the numbers say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_tasks.admin.charts import Chart, bars, lines
from a2a_tasks.store.figures import Series

SINCE, STEP = datetime(2026, 11, 22, tzinfo=UTC), timedelta(minutes=30)


def counts(*series: list[float]) -> Chart:
    """A chart of counts."""
    colours = ("good", "bad", "quiet")
    made = [
        Series(colour, colour, tuple(one)) for one, colour in zip(series, colours, strict=False)
    ]
    return bars("n", "N", SINCE, STEP, made)


class TestBars:
    def test_are_stacked_from_the_ground(self) -> None:
        good, bad = counts([3], [1]).bars
        assert (good.y, good.height, good.colour) == (40, 60, "good")
        assert (bad.y, bad.height, bad.colour) == (20, 20, "bad")

    def test_say_their_number_and_moment(self) -> None:
        (bar,) = counts([0, 7]).bars
        assert bar.title.endswith("00:30:00: 7 good")

    @pytest.mark.parametrize(
        ("most", "top"),
        [(0, "1"), (5e-324, "1"), (1, "1"), (3, "5"), (5, "5"), (6, "10"), (1001, "2,000")],
    )
    def test_stand_below_a_round_number(self, most: float, top: str) -> None:
        assert counts([most]).heights[0] == top

    @pytest.mark.parametrize(("most", "middle"), [(0, ""), (2, "1"), (3, ""), (6, "5"), (50, "25")])
    def test_their_middle_is_named_if_it_is_a_count(self, most: float, middle: str) -> None:
        assert counts([most]).heights[1] == middle

    @given(st.lists(st.tuples(*[st.integers(0, 10**7)] * 3), min_size=1, max_size=60))
    def test_stay_inside(self, slots: list[tuple[int, int, int]]) -> None:
        chart = counts(*[list(map(float, one)) for one in zip(*slots, strict=True)])
        for bar in chart.bars:
            assert bar.x >= -0.01
            assert bar.x + bar.width <= 100.01
            assert bar.y >= -0.01
            assert bar.y + bar.height <= 100.01

    def test_leave_slots_with_nothing_out_of_the_table(self) -> None:
        ((at, values),) = counts([0, 2], [0, 1]).rows
        assert at.endswith("00:30:00")
        assert values == ("2", "1")


class TestLines:
    def test_are_broken_where_there_is_nothing(self) -> None:
        chart = lines("n", "N", SINCE, STEP, [Series("half", "main", (1.0, None, 1.0, 0.5))])
        assert [line.points.count(",") for line in chart.lines] == [2, 3]

    @given(st.lists(st.none() | st.floats(0, 1e7), min_size=1, max_size=60))
    def test_stay_inside(self, values: list[float | None]) -> None:
        chart = lines("n", "N", SINCE, STEP, [Series("half", "main", tuple(values))])
        numbers = [float(n) for line in chart.lines for n in line.points.replace(",", " ").split()]
        assert all(-0.01 <= number <= 100.01 for number in numbers)
