"""The ports that servers of tests get."""

from __future__ import annotations

from a2a_tasks.outbound.policy import SERVICES
from tests.support.ports import PORTS


def test_the_guard_of_outbound_calls_refuses_none_of_them() -> None:
    assert SERVICES.isdisjoint(PORTS)
