"""The times at which silent streams give a sign of life."""

from __future__ import annotations

from a2a_tasks.streaming.stream import TIMES, find_next_sign


def test_no_stream_is_silent_for_longer_than_it_may() -> None:
    for now in (0.0, 0.24, 7.999, 12_345.678):
        sign = find_next_sign(now, 4.0)
        assert sign is not None
        assert 4.0 * (1 - 1 / TIMES) < sign - now <= 4.0


def test_streams_that_begin_at_any_time_share_a_few_times() -> None:
    signs = {find_next_sign(number / 250, 4.0) for number in range(1000)}
    assert len(signs) <= TIMES + 1


def test_a_stream_that_wakes_a_little_late_keeps_its_time() -> None:
    first = find_next_sign(1.3, 4.0)
    assert first is not None
    assert find_next_sign(first + 0.003, 4.0) == first + 4.0
