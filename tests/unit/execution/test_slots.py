"""The slots of a process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st

from a2a_tasks.execution.slots import AgentKind, Slots
from a2a_tasks.store.records import CLAIM_BYTES


def test_of_few_slots_all_may_be_one_share() -> None:
    slots = Slots(3)
    for _ in range(3):
        slots.take("a")
    assert (slots.room, slots.at_once()) == (0, 0)
    assert slots.free("a"), "somebody may have waited for the last slot"
    assert not slots.free("a"), "there was room before"


def test_a_share_alone_leaves_a_tenth_of_the_slots_to_whoever_comes_next() -> None:
    slots = Slots(50)
    assert slots.at_once() == 45
    for _ in range(45):
        slots.take("a")
    assert list(slots.full()) == ["a"]
    assert slots.at_once() > 0, "for the next one"


def test_there_is_a_slot_for_the_third_while_two_want_all() -> None:
    slots = Slots(100)
    for share in filling(slots, "ab" * 100):
        slots.take(share)
    assert slots.room > 0
    assert set(slots.full()) == {"a", "b"}


def test_a_share_that_is_full_may_have_more_once_another_leaves_a_slot() -> None:
    slots = Slots(21)
    slots.take("b")
    for share in filling(slots, "a" * 21):
        slots.take(share)
    assert list(slots.full()) == ["a"]
    assert slots.free("b"), "others' runs may have waited for that"
    assert list(slots.full()) == []


def test_a_share_that_has_its_slots_is_full_until_one_is_free(settings: Any) -> None:
    settings.A2A_RUN_SLOTS_PER_TENANT = 2
    slots = Slots(10)
    assert slots.at_once() == 2
    slots.take("a")
    assert (slots.at_once(), list(slots.full())) == (1, [])
    slots.take("a")
    assert (slots.at_once(), list(slots.full())) == (2, ["a"])
    assert slots.free("a"), "its own runs may have waited"
    assert list(slots.full()) == []


def test_a_kind_of_agents_has_no_more_runs_than_can_be_executed() -> None:
    slots = Slots(100, {AgentKind.THREAD: lambda: 2})
    slots.take("a", AgentKind.THREAD)
    assert slots.find_room(AgentKind.THREAD) == 1
    slots.take("b", AgentKind.THREAD)
    assert slots.find_room(AgentKind.THREAD) == 0
    assert slots.find_room(AgentKind.LOOP) == 98
    assert not slots.free("c", AgentKind.LOOP), "that is no thread"
    assert slots.free("b", AgentKind.THREAD), "a due run may have waited for the thread"


def test_runs_need_bytes_as_well_of_which_a_share_leaves_a_tenth() -> None:
    slots = Slots(100, most_bytes=1000)
    for _ in range(9):
        assert (list(slots.full()), slots.find_room(AgentKind.LOOP) > 0) == ([], True)
        slots.take("a", size=100)
    assert list(slots.full()) == ["a"]
    assert 0 < slots.bytes_at_once() <= 100
    slots.take("b", size=100)
    assert (slots.find_room(AgentKind.LOOP), slots.at_once()) == (0, 0)
    assert slots.free("a", size=100), "due runs may have waited for the bytes"
    assert (slots.find_room(AgentKind.LOOP), list(slots.full())) == (90 + 1, [])


def test_one_run_fits_whatever_its_size_is() -> None:
    slots = Slots(10, most_bytes=1000)
    assert slots.bytes_at_once() > 0
    slots.take("a", size=5000)
    assert slots.find_room(AgentKind.LOOP) == 0
    slots.free("a", size=5000)
    assert slots.bytes_at_once() > 0


def test_a_claim_takes_few_bytes_at_once_however_many_there_are() -> None:
    assert Slots(10).bytes_at_once() == CLAIM_BYTES


def test_a_run_that_waits_for_others_lends_its_bytes_up_to_as_many_as_there_are() -> None:
    slots = Slots(10, most_bytes=1000)
    for _ in range(2):
        assert slots.may_lend(AgentKind.LOOP)
        slots.take("a", size=600)
        slots.lend("a", AgentKind.LOOP, 600)
        assert slots.find_room(AgentKind.LOOP) == 10
    assert not slots.may_lend(AgentKind.LOOP), "they would be in memory beside all others"
    slots.take_back("a", AgentKind.LOOP, 600)
    assert slots.may_lend(AgentKind.LOOP)


def filling(slots: Slots, waiting: str) -> Iterator[str]:
    """Whose runs are taken of those that wait, by `at_once`, of shares that are not full, as a runner does it."""
    left = list(waiting)
    while limit := max(0, slots.at_once()):
        taken = [share for share in left if share not in slots.full()][:limit]
        for share in taken:
            left.remove(share)
        yield from taken
        if len(taken) < limit:
            break


@given(st.text("abc"), st.integers(1, 40), st.integers(0, 4))
def test_whoever_they_are_no_share_gets_more_than_it_may(
    waiting: str, count: int, most: int
) -> None:
    with override_settings(A2A_RUN_SLOTS_PER_TENANT=most):
        slots, carried = Slots(count), Counter[str]()
        for share in filling(slots, waiting):
            assert share not in slots.full()
            slots.take(share)
            carried[share] += 1
        left = Counter(waiting) - carried
        assert slots.room == 0 or all(share in slots.full() for share in left if left[share])
    assert not most or all(count <= most for count in carried.values())
    assert slots.room == count - carried.total() >= 0


def test_bytes_that_turn_out_fewer_are_told_to_those_that_wait_for_them() -> None:
    slots = Slots(10, most_bytes=100)
    slots.take("a", size=95)
    assert list(slots.full()) == ["a"]
    assert slots.resize("a", 95, 50)
    assert not slots.full()
    assert not slots.resize("a", 50, 10), "nobody has waited"
    assert not slots.resize("a", 10, 100)
    assert list(slots.full()) == ["a"]
