"""The story of the same name, with each way of hearing less."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from tests.journeys.test_hints_off import (
    NEITHER,
    NOWHERE,
    hard_of_hearing,
    test_a_cancelled_agent_is_stopped_by_the_heartbeat,
    test_everything_completes_by_polling,
)

__all__ = [
    "test_a_cancelled_agent_is_stopped_by_the_heartbeat",
    "test_everything_completes_by_polling",
]
pytestmark = pytest.mark.backend("stack")
#: What the web process and the worker are told.
WAYS: Mapping[str, tuple[dict[str, str], dict[str, str]]] = {
    "the web process hears no hints": ({"REDIS_URL": ""}, {}),
    "nobody sends hints": ({"REDIS_URL": ""}, {"REDIS_URL": ""}),
    "the Redis of the hints is down": ({"REDIS_URL": NOWHERE}, {"REDIS_URL": NOWHERE}),
    "the broker takes no wake-ups": ({"CELERY_BROKER_URL": NOWHERE}, {}),
    "neither hints nor wake-ups": NEITHER,
}


@pytest.fixture(params=WAYS, scope="module")
def url(request: pytest.FixtureRequest, emptied: None) -> Iterator[str]:
    """Of a host that hears less."""
    with hard_of_hearing(*WAYS[request.param]) as url:
        yield url
