"""The smoke of the farm: a host sends webhooks to a few receivers, good and bad."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.campaigns.farm import parts
from tests.campaigns.farm.lab import FarmLab, plan
from tests.campaigns.faultlab.verdict import nothing_was_lost

pytestmark = [pytest.mark.backend("stack"), pytest.mark.thorough]
#: What is well, hangs, floods, refuses, refuses at first, is gone, redirects.
KINDS = (7, 5, 12, 17, 18, 22, 24)


@pytest.fixture(scope="module")
def lab() -> Iterator[FarmLab]:
    """A host whose schedule of three days takes a second."""
    with FarmLab(plan(scale=0.000004, limit=1.0, beat=False)) as host:
        yield host


def test_every_event_is_delivered_or_dead_whatever_receivers_do(lab: FarmLab) -> None:
    episode = parts.behaviours(lab, KINDS, tasks=1, words=2, seed=1)
    nothing_was_lost(episode)
    assert episode.figures["refused"] > 10
