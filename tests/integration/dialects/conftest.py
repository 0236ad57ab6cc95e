"""The host of the bindings' tests, and beside it the agents the golden conversations are held with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from a2a_tasks.agents import registry
from tests.support.bindings.fixtures import client, host, local, puppet
from tests.support.dialects.actors import ACTORS
from tests.support.dialects.transcript import Stage

__all__ = ["client", "host", "local", "puppet", "stage"]


@pytest.fixture
def stage(host: None, settings: object) -> Iterator[Stage]:
    """Host the agents that are led word by word, each at `/agents/<slug>`."""
    actors = {kind.slug: kind() for kind in ACTORS}
    registry._found.update(actors)
    yield Stage(actors)
    for slug in actors:
        del registry._found[slug]
