"""The quick tier: some tasks and two kills. `python -m tests.campaigns.usage` is the long one."""

from __future__ import annotations

import pytest

from tests.campaigns.faultlab.verdict import nothing_was_lost
from tests.campaigns.usage.judge import Answer, judge
from tests.campaigns.usage.lab import UsageLab, plan, run

ANSWERS = [Answer(1, (7, 2), 10.0), Answer(1, (9, 1), 11.0), Answer(1, (11, 1))]


@pytest.mark.backend("stack")
def test_the_ledger_has_each_answer_that_was_read_when_workers_die() -> None:
    with UsageLab(plan()) as lab:
        nothing_was_lost(run(lab, 20, 2, 1))
        assert lab.judgement.ledger.calls >= 60


class TestJudge:
    def test_takes_equal_sums(self) -> None:
        both = [(1, (7, 2)), (1, (9, 1))]
        found = judge(ANSWERS, both, both, [])
        assert found.faults == []
        assert (found.ledger.calls, found.ledger.input_tokens) == (2, 16)
        assert (found.answered.calls, found.cut_off.calls) == (2, 1)

    def test_explains_losses_by_kills(self) -> None:
        found = judge(ANSWERS, [(1, (7, 2))], [], [10.4])
        assert (found.unread.calls, found.unstored.calls) == (1, 1)
        assert found.faults == []

    @pytest.mark.parametrize(
        ("begun", "rows", "kills"),
        [
            ([(1, (7, 2))], [(1, (7, 2))], []),
            ([(1, (7, 2)), (1, (9, 1))], [(1, (7, 2))], [14.0]),
            ([(1, (7, 2)), (1, (9, 1))], [(1, (7, 2)), (1, (9, 1)), (1, (9, 1))], []),
            ([(1, (7, 2)), (1, (9, 1)), (1, (9, 1))], [(1, (7, 2)), (1, (9, 1)), (1, (9, 1))], []),
            ([(1, (7, 2)), (1, (9, 1))], [(1, (7, 2)), (2, (9, 1))], []),
        ],
    )
    def test_finds(self, begun: list[object], rows: list[object], kills: list[float]) -> None:
        assert judge(ANSWERS, begun, rows, kills).faults != []  # type: ignore[arg-type]
