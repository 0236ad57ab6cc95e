"""What the laboratory adds to the hooks and fixtures of the tests: programs that only it needs."""

from __future__ import annotations

import pytest

from lab.outages import pgbouncer
from lab.server import nginx

pytest_plugins = ["tests.plugin"]
#: The tests in environments of their own: `make lab-frameworks` runs them.
collect_ignore = ["frameworks"]
PROGRAMS = {"pgbouncer": pgbouncer.path, "nginx": nginx.path}


def pytest_report_header() -> str:
    """Name the programs."""
    paths = {name: find() for name, find in PROGRAMS.items()}
    missing = "none found, so its tests are left out"
    return ", ".join(f"{name}: {path or missing}" for name, path in paths.items())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of programs that are not there."""
    missing = [name for name, find in PROGRAMS.items() if find() is None]
    left_out = [item for item in items if any(map(item.get_closest_marker, missing))]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
