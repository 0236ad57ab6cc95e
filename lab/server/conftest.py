"""The served app that the tests of the web server talk to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from lab.server.process import ServedApp
from tests.journeys.fixtures import ask, emptied, pytest_runtest_makereport

__all__ = ["ask", "emptied", "pytest_runtest_makereport"]

Start = Callable[..., ServedApp]


@pytest.fixture(scope="module")
def shared() -> Iterator[ServedApp]:
    """A served app for tests that leave it as it was."""
    with ServedApp() as app:
        yield app


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a served app of one's own, with settings of the host."""
    with ExitStack() as stack:
        yield lambda *options, **settings: stack.enter_context(ServedApp(*options, **settings))
