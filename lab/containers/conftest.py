"""Where these tests can run."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.containers import namespaces
from lab.server import nginx
from tests.journeys.fixtures import pytest_runtest_makereport

__all__ = ["pytest_runtest_makereport"]

HERE = Path(__file__).parent


def lacking() -> str:
    """What this machine lacks for them; empty = nothing."""
    return namespaces.missing() or ("" if nginx.path() else "no nginx")


def pytest_report_header() -> str:
    """Say whether they run."""
    return f"containers: {f'{lacking()}, so their tests are left out' if lacking() else 'by namespaces'}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave them out where there are no namespaces, or no nginx."""
    if lacking():
        here = [item for item in items if HERE in item.path.parents]
        config.hook.pytest_deselected(items=here)
        items[:] = [item for item in items if item not in here]
