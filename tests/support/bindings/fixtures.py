"""A host in the process of the test: its own runner, callers without credentials, nothing left when the test ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from pytest_django import Settings

from a2a_project.asgi import application
from a2a_tasks import process_lifetime
from a2a_tasks.agents import registry
from a2a_tasks.execution.sealer import Sealer
from tests.support.bindings.client import Client, ends
from tests.support.bindings.peers import PEERS, Peer
from tests.support.bindings.puppet import Puppet
from tests.support.bindings.rpc_peer import Grpc
from tests.support.execution.host import look_later


@pytest.fixture(autouse=True)
def local(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run agents here, on either backend, for anybody; nothing waits when the host is taken down.

    The audit log is not sealed, which would be a tenth of what these tests take (`tests/integration/execution/test_sealer.py`).
    The first look for lost runs, another quarter, comes after POLL_SECONDS, as in a host that has looked just now.
    """
    monkeypatch.setattr(Sealer, "_seal", _unsealed)
    look_later(monkeypatch)
    settings.A2A_RUNS = "local"
    settings.A2A_ANONYMOUS = "1"
    settings.A2A_DRAIN_SECONDS = 0.0


async def _unsealed(_: Sealer) -> None:
    """Leave the log as it is."""


@pytest.fixture
async def host(local: None, db: None) -> AsyncIterator[None]:
    """Take down at the end what the test's requests have started."""
    callbacks = process_lifetime._process._stop_callbacks
    before = set(callbacks)
    yield
    for key in sorted(set(callbacks) - before, reverse=True):
        await ends(callbacks.pop(key)())


@pytest.fixture
def client() -> Client:
    """A client of the whole host."""
    return Client(application)


@pytest.fixture(params=[*PEERS, Grpc], ids=lambda peer: peer.name)
def peer(request: pytest.FixtureRequest, host: None, client: Client) -> Peer:
    """A client of the demo agent, over each binding."""
    made: Peer = request.param(Client(client.app, "/agents/demo"))
    return made


@pytest.fixture(params=PEERS, ids=lambda peer: peer.name)
def http_peer(request: pytest.FixtureRequest, host: None, client: Client) -> Peer:
    """The same, over the bindings on HTTP: for what only these have."""
    made: Peer = request.param(Client(client.app, "/agents/demo"))
    return made


@pytest.fixture
def puppet() -> Iterator[Puppet]:
    """Host the agent that does as told, at `/agents/puppet`."""
    agent = Puppet()
    registry._found[agent.slug] = agent
    yield agent
    del registry._found[agent.slug]
