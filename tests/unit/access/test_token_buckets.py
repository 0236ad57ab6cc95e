"""Token buckets: never more than the rate allows, never less, in memory and in Redis alike."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from typing import Any

import pytest
import redis.asyncio
from django.conf import settings as django_settings
from hypothesis import given
from hypothesis import strategies as st

from a2a_tasks import pubsub
from a2a_tasks.access.token_buckets import LocalBuckets, SharedBuckets
from a2a_tasks.rates import Rate


def every(seconds: float, burst: int) -> Rate:
    return Rate(round(seconds * 1e6), burst)


class Clock:
    """A clock that one turns."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def taken(buckets: LocalBuckets, name: str, rate: Rate, limit: int = 1000) -> int:
    count = 0
    while count < limit and not buckets.take({name: rate}):
        count += 1
    return count


class TestOneBucket:
    def test_is_full_at_first_and_fills_by_and_by(self) -> None:
        clock = Clock()
        buckets, rate = LocalBuckets(clock), every(0.5, 3)
        assert taken(buckets, "a", rate) == 3
        assert buckets.take({"a": rate}) == pytest.approx(0.5)
        clock.now = 1.0
        assert taken(buckets, "a", rate) == 2
        clock.now = 1000.0
        assert taken(buckets, "a", rate) == 3

    def test_a_look_takes_nothing(self) -> None:
        buckets, rate = LocalBuckets(Clock()), every(1, 1)
        for _ in range(5):
            assert buckets.take({"a": rate}, only_look=True) == 0
        assert buckets.take({"a": rate}) == 0
        assert buckets.take({"a": rate}, only_look=True) == pytest.approx(1)

    @given(st.lists(st.floats(0, 5), max_size=60), st.floats(0.01, 3), st.integers(1, 10))
    def test_never_gives_more_than_it_may(
        self, gaps: list[float], interval: float, burst: int
    ) -> None:
        clock, rate = Clock(), every(interval, burst)
        buckets, given_at = LocalBuckets(clock), []
        for gap in gaps:
            clock.now += gap
            if not buckets.take({"a": rate}):
                given_at.append(clock.now)
        for first, begun in enumerate(given_at):
            for last in range(first, len(given_at)):
                limit = burst + (given_at[last] - begun) / interval
                assert last - first + 1 <= math.floor(limit + 1e-3)

    @given(st.lists(st.floats(0, 5), max_size=30), st.floats(0.01, 3), st.integers(1, 10))
    def test_who_waits_as_long_as_it_was_told_gets_a_token(
        self, gaps: list[float], interval: float, burst: int
    ) -> None:
        clock, rate = Clock(), every(interval, burst)
        buckets = LocalBuckets(clock)
        for gap in gaps:
            clock.now += gap
            if wait := buckets.take({"a": rate}):
                clock.now += wait + 2e-6  # the clock's floats are not exact
                assert not buckets.take({"a": rate})


class TestSeveralBuckets:
    def test_one_that_is_empty_costs_the_others_nothing(self) -> None:
        buckets, rare, often = LocalBuckets(Clock()), every(9, 1), every(1, 2)
        assert buckets.take({"a": rare, "b": often}) == 0
        assert buckets.take({"a": rare, "b": often}) == pytest.approx(9)
        assert taken(buckets, "b", often) == 1

    def test_those_that_are_full_again_are_forgotten(self) -> None:
        clock = Clock()
        buckets = LocalBuckets(clock, limit=10)
        for n in range(100):
            clock.now += 0.1
            buckets.take({f"caller:{n}": every(0.5, 1)})
            assert len(buckets._full) <= 10
        assert buckets.take({"caller:99": every(0.5, 1)}), "the emptiest are kept"


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> list[SharedBuckets]:
    """Several that share Redis."""
    monkeypatch.setattr("a2a_tasks.access.token_buckets.PATIENCE_SECONDS", 30.0)
    return [SharedBuckets() for _ in range(4)]


@pytest.mark.backend("stack")
class TestInRedis:
    async def test_they_give_what_those_in_memory_give(
        self, processes: list[SharedBuckets]
    ) -> None:
        shared, rate = processes[0], every(60.0, 3)
        assert [await shared.take({"x1": rate}) for _ in range(3)] == [0, 0, 0]
        assert 59 < await shared.take({"x1": rate}) <= 60
        assert 59 < await shared.take({"x1": rate}, only_look=True) <= 60
        assert await shared.take({"x1": rate, "x2": every(60, 1)}) > 59
        assert await shared.take({"x2": every(60, 1)}) == 0, "nothing was taken of it"

    async def test_many_at_once_from_several_processes_get_no_more(
        self, processes: list[SharedBuckets]
    ) -> None:
        works = [processes[n % 4].take({"y": every(60.0, 10)}) for n in range(60)]
        answers = Counter(wait == 0 for wait in await asyncio.gather(*works))
        assert answers[True] == 10

    async def test_what_is_full_again_leaves_nothing_behind(
        self, processes: list[SharedBuckets]
    ) -> None:
        await processes[0].take({"z": every(7.0, 5)})
        async with redis.asyncio.from_url(django_settings.REDIS_URL) as client:
            left = await client.pttl(f"{{{pubsub.prefix()}}}:rate:z")
        assert 0 < left <= 7002


async def test_without_redis_each_process_counts_alone(
    settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    shared, rate = SharedBuckets(), every(60.0, 2)
    assert [await shared.take({"a": rate}) > 0 for _ in range(3)] == [False, False, True]
    told = [r for r in caplog.records if "counted in each process alone" in r.message]
    assert len(told) <= 1
