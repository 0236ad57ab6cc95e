"""The slots of a process."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st

from a2a_tasks.execution.slots import Slots


def test_without_a_bound_all_slots_may_be_one_share() -> None:
    slots = Slots(3)
    for _ in range(3):
        slots.take("a")
    assert (slots.room, slots.at_once(), list(slots.full())) == (0, 0, [])
    assert slots.free("a"), "somebody may have waited for the last slot"
    assert not slots.free("a"), "there was room before"


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


@given(st.lists(st.sampled_from("abc")), st.integers(1, 8), st.integers(1, 4))
def test_whoever_they_are_no_share_gets_more_than_it_may(
    waiting: list[str], count: int, most: int
) -> None:
    """Runs are claimed by `at_once`, of shares that are not full, as a runner does it."""
    with override_settings(A2A_RUN_SLOTS_PER_TENANT=most):
        slots, carried = Slots(count), Counter[str]()
        while limit := slots.at_once():
            taken = [share for share in waiting if share not in slots.full()][:limit]
            for share in taken:
                waiting.remove(share)
                slots.take(share)
            carried.update(taken)
            if len(taken) < limit:
                break
    assert all(count <= most for count in carried.values())
    assert slots.room == count - carried.total() >= 0
    assert slots.room == 0 or all(carried[share] == most for share in waiting)
