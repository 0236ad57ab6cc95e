"""The quick tier: one host, a farm of bad receivers, and a pusher that dies, within a minute. `make lab-webhooks` is the long one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.farm import parts
from lab.farm.lab import FarmLab, plan
from lab.faultlab.verdict import nothing_was_lost

pytestmark = pytest.mark.backend("stack")
#: What hangs, answers a byte a second, floods, breaks, refuses, redirects, flaps, asks to wait, is nobody, and changes its mind.
KINDS = (5, 7, 8, 12, 16, 17, 18, 22, 23, 24, 25, 27, 30, 34, 35, 36)


@pytest.fixture(scope="module")
def lab() -> Iterator[FarmLab]:
    """A host whose schedule of three days takes five seconds."""
    with FarmLab(plan(scale=0.00002, limit=1.0)) as host:
        yield host


def test_every_event_is_delivered_or_dead_whatever_receivers_do(lab: FarmLab) -> None:
    episode = parts.behaviours(lab, KINDS, tasks=2, words=3, seed=1)
    nothing_was_lost(episode)
    assert episode.figures["refused"] > 10


def test_large_bodies_and_small_ones_beside_them_are_all_delivered(lab: FarmLab) -> None:
    nothing_was_lost(parts.beside_large(lab, 4, seed=1))


def test_what_was_under_way_when_a_pusher_died_is_sent_under_the_same_id(lab: FarmLab) -> None:
    nothing_was_lost(parts.kill(lab, "webhook.sent", "kill", seed=1))
