"""The quick tier: one host, hurt in nine ways within a minute. `make faults` is the long one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faultlab import points, streams, zombies
from tests.faultlab.lab import QUICK, Episode, Lab, Plan

pytestmark = pytest.mark.backend("stack")


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """A host with leases of 1.5 s."""
    with Lab(Plan(environ=QUICK)) as host:
        yield host


def nothing_was_lost(episode: Episode) -> None:
    """Fail with everything that was violated, and the seed that shows it again."""
    told = "\n".join(map(str, episode.violations))
    assert not episode.violations, f"{episode.name}, seed {episode.seed}:\n{told}"


@pytest.mark.parametrize(
    ("point", "action"),
    [
        ("accept.committed", "kill"),
        ("worker.claimed", "kill"),
        ("worker.appended", "stop"),
        ("worker.step_kept", "kill"),
        ("worker.ending", "kill"),
        ("worker.draining", "term"),
    ],
)
def test_nothing_is_lost_when_a_process_dies_there(lab: Lab, point: str, action: str) -> None:
    nothing_was_lost(points.run(lab, point, action, seed=1))


def test_a_frozen_worker_that_wakes_writes_nothing(lab: Lab) -> None:
    nothing_was_lost(zombies.run(lab, seed=1))


def test_streams_that_are_torn_again_and_again_miss_nothing(lab: Lab) -> None:
    episode = streams.run(lab, seed=1, tasks=3)
    assert episode.figures["cuts"] > 10
    nothing_was_lost(episode)


def test_work_goes_on_without_redis_and_after_it_came_back_empty(lab: Lab) -> None:
    lab.redis.kill()
    lab.tell(what="fault", name="redis", process="redis", pid=None, action="away")
    try:
        nothing_was_lost(zombies.calm(lab, seed=2))
    finally:
        lab.redis.start(empty=True)
    nothing_was_lost(zombies.calm(lab, seed=3))
