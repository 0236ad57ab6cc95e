"""The quick tier: one conversation for each framework, and one on SQLite. `python -m lab.framework_kills kills` is the long one."""

from __future__ import annotations

import pytest

from lab.faultlab.verdict import nothing_was_lost
from lab.framework_kills.cases import SQLITE, STACK, make_case
from lab.framework_kills.lab import EmbeddedKillsLab, KillsLab, plan, run

#: Seeds with three or four kills of different kinds, one of them after an approval.
SEEDS = {"pydantic_ai": 23, "langgraph": 27, "openai_agents": 17}


@pytest.mark.backend("stack")
@pytest.mark.parametrize("framework", SEEDS)
def test_nothing_used_is_made_again_when_a_worker_dies(framework: str) -> None:
    with KillsLab(plan(framework, STACK, beat=False)) as lab:
        nothing_was_lost(run(lab, make_case(framework, SEEDS[framework])))


@pytest.mark.backend("sqlite")
def test_nothing_used_is_made_again_when_the_host_dies() -> None:
    with EmbeddedKillsLab(plan("langgraph", SQLITE)) as lab:
        nothing_was_lost(run(lab, make_case("langgraph", SEEDS["langgraph"], SQLITE)))
