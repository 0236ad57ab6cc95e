"""Charts: what the page draws and its table say the same numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from a2a_console.admin.widgets.charts import Chart

SINCE, STEP = datetime(2026, 11, 22, tzinfo=UTC), timedelta(minutes=30)


def counts(*series: Sequence[int]) -> Chart:
    return Chart("N", SINCE, STEP, dict(zip(("good", "bad", "quiet"), series, strict=False)))


class TestAChart:
    def test_tells_the_page_where_its_slots_begin_and_what_they_hold(self) -> None:
        data = json.loads(counts([0, 7], [1, 0]).data)
        assert data["since"] == SINCE.timestamp()
        assert data["step"] == 1800
        assert data["values"] == [[0, 7], [1, 0]]

    def test_leaves_slots_with_nothing_out_of_the_table(self) -> None:
        ((at, values),) = counts([0, 2], [0, 1]).rows
        assert at.endswith("00:30:00")
        assert values == (2, 1)

    @pytest.mark.parametrize("series", [[], [[], []]])
    def test_of_nothing_has_no_rows(self, series: list[list[int]]) -> None:
        assert not counts(*series).rows
