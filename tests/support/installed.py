"""A plugin of pytest for a run against installed packages (`make test-wheel`).

It leaves out the tests marked `checkout`, which read the sources as texts, and refuses to run against a checkout.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import ROOT
from tests.support.wheel import APPS

__all__ = ["pytest_collection_modifyitems", "pytest_configure"]


def pytest_configure() -> None:
    """Refuse to run beside sources. Raises pytest.UsageError."""
    import a2a_tasks  # noqa: PLC0415 - it is looked for where the tests would find it

    beside = [app for app in APPS if (ROOT / app).exists()]
    if beside or Path(a2a_tasks.__file__).is_relative_to(ROOT / "a2a_tasks"):
        raise pytest.UsageError(
            f"the packages must be installed, and are beside the tests: {beside}"
        )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what reads sources."""
    of_sources = [item for item in items if item.get_closest_marker("checkout")]
    config.hook.pytest_deselected(items=of_sources)
    items[:] = [item for item in items if not item.get_closest_marker("checkout")]
