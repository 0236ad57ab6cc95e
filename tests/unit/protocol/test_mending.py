"""Values of Python's JSON that other readers refuse, as they are mended."""

from __future__ import annotations

import json
import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from a2a_tasks.protocol.jsontext import read, write
from a2a_tasks.protocol.soundness import check_storable, mend, mend_text

#: Texts with halves of pairs.
TEXTS = st.text(st.characters() | st.sampled_from("\ud83d\ude00\ud800\udfff"), max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.integers(2**63, 2**80) | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_what_was_mended_is_kept_unchanged_and_is_not_mended_again(value: Any) -> None:
    mended = mend(value)
    check_storable("value", mended)
    assert read(write(mended)) == mended
    assert mend(mended) is mended


@given(TEXTS)
def test_a_text_is_what_a_reader_of_utf_16_makes_of_it(text: str) -> None:
    pairs = json.loads(json.dumps(text))  # joins pairs
    expected = "".join("\ufffd" if "\ud800" <= each <= "\udfff" else each for each in pairs)
    assert mend_text(text) == expected


@given(VALUES.filter(lambda value: mend(value) is value))
def test_what_needs_no_change_has_none(value: Any) -> None:
    assert json.loads(write(value)) == value or isinstance(value, float)


def test_numbers() -> None:
    given_ = [math.nan, math.inf, 2**64, -(2**63) - 1, 2**5000, 2**64 - 1, 1.5]
    assert mend(given_) == [None, None, str(2**64), str(-(2**63) - 1), None, 2**64 - 1, 1.5]


def test_other_types_and_too_deep_values_stay_for_the_check() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    thing = object()
    assert (mend(deep) is deep, mend(thing) is thing) == (True, True)
    raw = {"a": b"\xff"}
    assert mend(raw) is raw
