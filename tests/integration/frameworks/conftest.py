"""The settings of hosts for adapters, and their models."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.model_server import ModelServer, serving_model
from tests.support.bindings.authority import Authority
from tests.support.execution.host import look_later
from tests.support.frameworks import CLIENTS

pytest.register_assert_rewrite("tests.support.model_contract")


@pytest.fixture(autouse=True)
def local(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs be this process's own, and stopped ones be given up soon."""
    look_later(monkeypatch)
    settings.A2A_RUNS = "local"
    settings.A2A_POLL_SECONDS = 0.3
    settings.A2A_BEAT_SECONDS = 0.3
    settings.A2A_LEASE_SECONDS = 2.0


@pytest.fixture(scope="package", autouse=True)
def _one_authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let clients of models, which use no TLS here, read one certificate in place of all of this machine: 20 ms each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(Authority(tmp_path_factory.mktemp("tls")).path))
        yield


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """A model server of the test's own: its counts are those of the test."""
    with serving_model() as server:
        yield server


@pytest.fixture(autouse=True)
async def closed() -> AsyncIterator[None]:
    """Close the clients of models, in the event loop of their test."""
    yield
    while CLIENTS:
        closing = CLIENTS.pop().close()
        if closing is not None:  # that of a synchronous client is
            await closing
