"""A host of its own for each test that harms it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.outages.host import Host


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A host whose worker runs, on a database behind a proxy."""
    made = Host(tmp_path)
    try:
        with made.way:
            made.start()
            yield made
    finally:
        made.close()
