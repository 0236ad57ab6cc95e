"""A host in the process of the test whose doors are open, and its clients."""

from __future__ import annotations

import math

import pytest
from pytest_django import Settings

from a2a_doors.mcp import calls
from tests.support.bindings.fixtures import client, host, local, puppet

__all__ = ["client", "doors", "host", "local", "puppet"]


@pytest.fixture(autouse=True)
def nobody_is_impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a client that leaves at once may leave after five seconds, and would stop nothing then."""
    monkeypatch.setattr(calls, "IMPATIENT", (math.inf, math.inf))


@pytest.fixture(autouse=True)
def doors(settings: Settings, host: None) -> None:
    """Open the doors."""
    settings.A2A_DOORS = "openai, ag-ui"
