"""Of the infrastructure faults, two that once ended badly: an answer 500, and workers that died."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.faultlab import infrastructure
from lab.faultlab.lab import Lab, Plan

pytestmark = pytest.mark.backend("stack")


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """A host with proxies before its servers."""
    with Lab(Plan(webs=1, workers=1, proxied=True)) as host:
        yield host


@pytest.mark.parametrize("number", [4, 18])
def test_a_fault_costs_no_more_than_is_promised(lab: Lab, number: int) -> None:
    episode = infrastructure.run(lab, number, seed=1)
    told = "\n".join(map(str, episode.violations))
    assert not episode.violations, (
        f"{episode.name}, seed {episode.seed}:\n{told}\n{episode.figures}"
    )


def test_every_fault_has_a_number_and_a_name_of_its_own() -> None:
    faults = infrastructure.FAULTS
    assert len({fault.number for fault in faults}) == len({fault.name for fault in faults})
    assert len(faults) == len({fault.number for fault in faults}) >= 30
