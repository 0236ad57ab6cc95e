"""Rates as they are written."""

from __future__ import annotations

import pytest

from a2a_tasks.rates import Rate, read_rate


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("20/s", Rate(50_000, 20)),
        ("600/m", Rate(100_000, 600)),
        ("1000/h burst 50", Rate(3_600_000, 50)),
        (" 1 / s  burst  1 ", Rate(1_000_000, 1)),
        ("", None),
        (" ", None),
    ],
)
def test_what_is_written_is_read(text: str, rate: Rate | None) -> None:
    assert read_rate(text) == rate


@pytest.mark.parametrize(
    "text",
    ["20", "20/d", "0/s", "-1/s", "1.5/s", "20/s burst 0", "burst 5", "x", "٣/s", "1000000/s"],
)
def test_anything_else_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="is no rate such as 20/s") as found:
        read_rate(text)
    assert repr(text) in str(found.value)
