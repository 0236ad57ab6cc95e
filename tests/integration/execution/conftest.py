"""Processes for agents and runs of this process, as several files of tests need them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from a2a_tasks.execution import processes
from tests.support.execution.forked import keep_environment, start_or_fork
from tests.support.execution.host import hosting
from tests.support.spans import spans

__all__ = ["agent_processes", "local_runs", "spans"]

#: Apps with the agents that tests run in processes.
APPS = "tests.integration.execution.process_agents,tests.support.execution.neighbours"


@pytest.fixture
def agent_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let processes for agents know the agents of the tests; they are forked, as long as a test sets nothing else."""
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "a2a_project.settings")
    monkeypatch.setenv("A2A_APPS", APPS)
    keep_environment()
    monkeypatch.setattr(processes, "_popen", start_or_fork)


@pytest.fixture
async def local_runs(settings: Any) -> AsyncIterator[None]:
    """Let runs be this process's own."""
    settings.A2A_RUNS = "local"
    settings.A2A_POLL_SECONDS = 0.1
    async with hosting():
        yield
