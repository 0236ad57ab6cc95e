"""The two servers a host may run on: every promise is kept by both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.campaigns.server.process import ServedApp
from tests.journeys.fixtures import emptied

__all__ = ["emptied"]

Start = Callable[..., ServedApp]


@pytest.fixture(params=["daphne", "uvicorn"], scope="module")
def server(request: pytest.FixtureRequest) -> str:
    """The server's name."""
    return str(request.param)


@pytest.fixture(scope="module")
def shared(server: str) -> Iterator[ServedApp]:
    """A served app for tests that leave it as it was."""
    with ServedApp(server) as app:
        yield app


@pytest.fixture
def start(server: str) -> Iterator[Start]:
    """Start a served app of one's own, with options of `tests.campaigns.server.apps`."""
    with ExitStack() as stack:
        yield lambda *options: stack.enter_context(ServedApp(server, *options))
