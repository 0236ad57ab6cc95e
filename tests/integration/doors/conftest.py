"""A host in the process of the test whose doors are open, and its clients."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from tests.support.bindings.fixtures import client, host, local, puppet

__all__ = ["client", "doors", "host", "local", "puppet"]


@pytest.fixture(autouse=True)
def doors(settings: Settings, host: None) -> None:
    """Open the doors."""
    settings.A2A_DOORS = "openai, ag-ui"
