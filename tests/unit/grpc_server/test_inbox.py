"""The unread bytes of calls: how many, and who is refused when they are too many."""

from __future__ import annotations

import asyncio

import pytest

from a2a_project.grpc_server.inbox import Budget, Inbox


def test_one_holder_gets_half_and_leaves_as_much_for_the_next() -> None:
    budget = Budget(90)
    assert not budget.take(46, 0)
    assert budget.take(45, 0)
    assert not budget.take(1, 45)
    assert not budget.take(23, 0)
    assert budget.take(22, 0)
    budget.give_back(45)
    assert budget.used == 22


def test_a_budget_within_another_is_a_holder_of_it() -> None:
    whole = Budget(100)
    first, second = Budget(1000, whole), Budget(1000, whole)
    assert first.take(50, 0)
    assert not first.take(1, 50)
    assert second.take(25, 0)
    assert not second.take(1, 25)
    first.give_back(50)
    assert (first.used, second.used, whole.used) == (0, 25, 25)


async def test_data_are_acknowledged_as_they_come_and_read_in_any_pieces() -> None:
    acknowledged: list[int] = []
    budget = Budget(100)
    inbox = Inbox(acknowledged.append, budget)
    reading = asyncio.create_task(inbox.read(4))
    inbox.add(b"abc", 10)
    inbox.add(b"", 0)
    inbox.add(b"def", 3)
    assert await reading == b"abcd"
    assert acknowledged == [10, 0, 3]
    assert (budget.used, inbox.unacked_size()) == (2, 0)
    inbox.eof()
    assert await inbox.read(5) == b"ef"
    assert await inbox.read(5) == b""
    assert budget.used == 0


@pytest.mark.parametrize("size", [0, 2])
async def test_beyond_the_budget_all_is_dropped_and_what_comes_later(size: int) -> None:
    budget = Budget(10)
    inbox = Inbox(lambda _: None, budget)
    inbox.add(b"a" * size, size)
    inbox.add(b"bcdefg", 6)
    inbox.add(b"h", 1)
    assert inbox.overflowed
    assert await inbox.read(1) == b""
    assert budget.used == 0
