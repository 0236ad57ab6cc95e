"""Ids of calls in an answer of a model."""

from __future__ import annotations

import pytest

from a2a_frameworks.shared.call_ids import make_unique


@pytest.mark.parametrize(
    ("given", "unique"),
    [
        ([], []),
        (["a", "b"], ["a", "b"]),
        (["a", "a", "a"], ["a", "a_2", "a_3"]),
        (["a", "a", "a_2"], ["a", "a_3", "a_2"]),
        (["a_2", "a", "a"], ["a_2", "a", "a_3"]),
        (["", ""], ["", ""]),
    ],
)
def test_an_id_that_comes_again_gets_a_number_and_others_stay(
    given: list[str], unique: list[str]
) -> None:
    assert make_unique(given) == unique
