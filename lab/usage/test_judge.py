"""The judge of the ledger says what it finds, and what a kill explains."""

from __future__ import annotations

import pytest

from lab.usage.judge import Answer, judge

ANSWERS = [
    Answer(1, (7, 2), 9.0, 10.0),
    Answer(1, (9, 1), 10.5, 11.0),
    Answer(1, (9, 1), 14.0, 15.0),
    Answer(1, (11, 1), 16.0),
]


def test_takes_equal_sums() -> None:
    all_ = [(1, (7, 2)), (1, (9, 1)), (1, (9, 1))]
    found = judge(ANSWERS, all_, all_, [])
    assert found.faults == []
    assert (found.ledger.calls, found.ledger.input_tokens) == (3, 25)
    assert (found.answered.calls, found.cut_off.calls) == (3, 1)


@pytest.mark.parametrize("kill", [10.0, 13.9])
def test_explains_a_lost_answer_by_a_kill_before_it_was_asked_for_again(kill: float) -> None:
    stored = [(1, (7, 2)), (1, (9, 1))]
    found = judge(ANSWERS, stored, stored, [kill])
    assert (found.unread.calls, found.unstored.calls, found.faults) == (1, 0, [])
    found = judge(ANSWERS, [*stored, (1, (9, 1))], stored, [kill])
    assert (found.unread.calls, found.unstored.calls, found.faults) == (0, 1, [])


@pytest.mark.parametrize(
    ("begun", "rows", "kills"),
    [
        ([7, 9], [7, 9], []),
        ([7, 9], [7, 9], [9.0]),
        ([7, 9], [7, 9], [14.1]),
        ([7, 9], [7], [11.0]),
        ([9, 9], [9, 9], [9.5]),
        ([7, 9, 9], [7, 9, 9, 9], []),
        ([7, 9, 9, 9], [7, 9, 9, 9], []),
        ([7, 9, 9], [7, 9, 9, 11], []),
    ],
)
def test_finds(begun: list[int], rows: list[int], kills: list[float]) -> None:
    outputs = {7: 2, 9: 1, 11: 1}
    told, kept = ([(1, (one, outputs[one])) for one in which] for which in (begun, rows))
    assert judge(ANSWERS, told, kept, kills).faults != []
