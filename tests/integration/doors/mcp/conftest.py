"""A host in the process of the test with its door for MCP open, at a port for published clients."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator

import pytest
import uvicorn
from pytest_django import Settings

from a2a_project.asgi import application
from a2a_tasks import pubsub
from tests.journeys.waiting import eventually
from tests.support.mcp_peer import QuietServer
from tests.support.ports import free_port


@pytest.fixture(autouse=True)
def opened(doors: None, settings: Settings) -> None:
    """Open the door, for callers that have no time."""
    settings.A2A_DOORS = "mcp"
    settings.A2A_MCP_HANDLE_SECONDS = settings.A2A_HANG_UP_SECONDS = 0.05


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin with full rates, in Redis as well."""
    place = uuid.uuid4().hex
    monkeypatch.setattr(pubsub, "prefix", lambda: place)


@pytest.fixture
async def site(opened: None) -> AsyncIterator[str]:
    """The base URL of the host."""
    port = free_port()
    config = uvicorn.Config(application, port=port, lifespan="off", log_config=None, ws="none")
    server = QuietServer(config)
    serving = asyncio.create_task(server.serve())
    await eventually(lambda: asyncio.sleep(0, server.started), "the server listens")
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    await serving
