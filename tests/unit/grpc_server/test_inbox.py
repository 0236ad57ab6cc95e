"""The unread bytes of calls: how many, and who is refused when they are too many."""

from __future__ import annotations

import asyncio

import pytest

from a2a_grpc.server.inbox import Inbox
from a2a_tasks.bindings.byte_quota import ByteQuota


def test_one_holder_gets_half_and_leaves_as_much_for_the_next() -> None:
    quota = ByteQuota(90)
    assert not quota.take(46, 0)
    assert quota.take(45, 0)
    assert not quota.take(1, 45)
    assert not quota.take(23, 0)
    assert quota.take(22, 0)
    quota.give_back(45)
    assert quota.used == 22


def test_a_quota_within_another_is_a_holder_of_it() -> None:
    whole = ByteQuota(100)
    first, second = ByteQuota(1000, whole), ByteQuota(1000, whole)
    assert first.take(50, 0)
    assert not first.take(1, 50)
    assert second.take(25, 0)
    assert not second.take(1, 25)
    first.give_back(50)
    assert (first.used, second.used, whole.used) == (0, 25, 25)


async def test_data_are_acknowledged_as_they_come_and_read_in_any_pieces() -> None:
    acknowledged: list[int] = []
    quota = ByteQuota(100)
    inbox = Inbox(acknowledged.append, quota, ByteQuota(0))
    reading = asyncio.create_task(inbox.read(4))
    inbox.add(b"abc", 10)
    inbox.add(b"", 0)
    inbox.add(b"def", 3)
    assert await reading == b"abcd"
    assert acknowledged == [10, 0, 3]
    assert (quota.used, inbox.unacked_size()) == (2, 0)
    inbox.eof()
    assert await inbox.read(5) == b"ef"
    assert await inbox.read(5) == b""
    assert quota.used == 0


@pytest.mark.parametrize("size", [0, 2])
async def test_beyond_the_quota_all_is_dropped_and_what_comes_later(size: int) -> None:
    quota = ByteQuota(10)
    inbox = Inbox(lambda _: None, quota, ByteQuota(0))
    inbox.add(b"a" * size, size)
    inbox.add(b"bcdefg", 6)
    inbox.add(b"h", 1)
    assert inbox.overflowed
    assert await inbox.read(1) == b""
    assert quota.used == 0
