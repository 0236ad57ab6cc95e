"""The quick tier: what the smoke has no time for, one host hurt in six ways. `make lab-faults` is the long one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.faultlab import points, streams, zombies
from lab.faultlab.lab import QUICK, Lab, Plan
from lab.faultlab.verdict import nothing_was_lost

pytestmark = pytest.mark.backend("stack")


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """A host with leases of 1.5 s."""
    with Lab(Plan(environ=QUICK)) as host:
        yield host


@pytest.mark.parametrize(
    ("point", "action"),
    [
        ("accept.committed", "kill"),
        ("worker.appended", "stop"),
        ("worker.step_kept", "kill"),
        ("worker.draining", "term"),
    ],
)
def test_nothing_is_lost_when_a_process_dies_there(lab: Lab, point: str, action: str) -> None:
    nothing_was_lost(points.run(lab, point, action, seed=1))


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
