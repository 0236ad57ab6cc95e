"""The smoke of the fault lab: a small host, whose worker is killed at the end of a run, and one that wakes as a zombie."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.faultlab import points, zombies
from lab.faultlab.lab import QUICK, Lab, Plan
from lab.faultlab.verdict import nothing_was_lost
from tests.support.thorough import thorough

pytestmark = pytest.mark.backend("stack")


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """A web process and two workers, with leases of 1.5 s."""
    with Lab(Plan(environ=QUICK, webs=1, workers=2, beat=False)) as host:
        yield host


@pytest.mark.parametrize("point", [thorough("worker.claimed"), "worker.ending"])
def test_nothing_is_lost_when_a_worker_is_killed_there(lab: Lab, point: str) -> None:
    nothing_was_lost(points.run(lab, point, "kill", seed=1))


def test_a_frozen_worker_that_wakes_writes_nothing(lab: Lab) -> None:
    nothing_was_lost(zombies.run(lab, seed=1))
