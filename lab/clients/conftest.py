"""Hosts as the journeys start them, and a way to tell of environments that are made."""

from __future__ import annotations

import pytest

from lab.clients.published import Say
from tests.journeys.fixtures import ask, emptied, pytest_runtest_makereport

__all__ = ["ask", "emptied", "pytest_runtest_makereport"]


@pytest.fixture(scope="module")
def say(request: pytest.FixtureRequest) -> Say:
    """Write a line that is seen at once."""
    manager = request.config.pluginmanager
    reporter, capture = manager.get_plugin("terminalreporter"), manager.get_plugin("capturemanager")
    assert reporter is not None
    assert capture is not None

    def line(text: str) -> None:
        with capture.global_and_fixture_disabled():
            reporter.write(f"\n{text}\n", flush=True)

    return line
