"""An open host in the process of the test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.bindings.fixtures import client, host, local

__all__ = ["client", "closed", "host", "local"]


@pytest.fixture(autouse=True)
def closed(local: None) -> Iterator[None]:
    """Not here: whoever is let in gets further."""
    yield
