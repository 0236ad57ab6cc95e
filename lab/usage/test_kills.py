"""The quick tier: some tasks and two kills. `python -m lab.usage` is the long one."""

from __future__ import annotations

import pytest

from lab.faultlab.verdict import nothing_was_lost
from lab.usage.lab import UsageLab, plan, run

pytestmark = pytest.mark.backend("stack")


def test_the_ledger_has_each_answer_that_was_read_when_workers_die() -> None:
    with UsageLab(plan()) as lab:
        nothing_was_lost(run(lab, 20, 2, 1))
        assert lab.judgement.ledger.calls >= 60
