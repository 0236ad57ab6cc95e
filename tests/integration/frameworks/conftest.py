"""The settings of hosts for adapters."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(autouse=True)
def local(settings: Any) -> None:
    """Let runs be this process's own, and stopped ones be given up soon."""
    settings.A2A_RUNS = "local"
    settings.A2A_POLL_SECONDS = 0.1
    settings.A2A_BEAT_SECONDS = 0.1
    settings.A2A_LEASE_SECONDS = 2.0
