"""Signatures need neither database nor broker: what is true of them on one backend is true on the other, so these tests run in one half only."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave this folder to the SQLite half."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.backend("sqlite"))
