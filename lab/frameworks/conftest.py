"""Django, its database and a model server, for the tests of one environment."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

os.environ["DJANGO_SETTINGS_MODULE"] = "lab.frameworks.settings"

import django
import pytest

pytest.register_assert_rewrite(
    "lab.frameworks.contract", "lab.frameworks.delegation", "tests.support.model_contract"
)
django.setup()

from django.core.management import call_command

from lab.frameworks.settings import DIRECTORY
from lab.frameworks.tools import LEDGER, LedgerFile
from tests.model_server import COMMANDS, Exchange, ModelServer, serving_model
from tests.support.execution.host import hosting


@pytest.fixture(scope="session", autouse=True)
def database() -> Iterator[None]:
    """Make the tables."""
    call_command("migrate", verbosity=0)
    yield
    shutil.rmtree(DIRECTORY)


class FramedModelServer(ModelServer):
    """A model server for frameworks that put messages into texts of their own: only commands count."""

    #: The last request as it came.
    last: list[tuple[str, str]]

    def _begin(self, entries: list[tuple[str, str]]) -> Exchange:
        self.last = entries
        scripts = [
            "\n".join(line for line in text.splitlines() if line.startswith(COMMANDS))
            if role == "user"
            else ""
            for role, text in entries
        ]
        if any(scripts):
            entries = [
                (role, script or text) if script or role != "user" else ("system", text)
                for (role, text), script in zip(entries, scripts, strict=True)
            ]
        return super()._begin(entries)


@pytest.fixture(scope="session")
def server() -> Iterator[ModelServer]:
    """A model server, which the agents of the environment are pointed at."""
    with serving_model(model=FramedModelServer()) as server:
        os.environ["CHAT_URL"] = server.url
        yield server


@pytest.fixture
def model(server: ModelServer) -> ModelServer:
    """The model server, which has counted nothing yet."""
    server.exchanges.clear()
    server.calls_read.clear()
    server._released = asyncio.Event()
    return server


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[LedgerFile]:
    """The file in which tools note their calls."""
    os.environ[LEDGER] = str(tmp_path / "ledger")
    yield LedgerFile(tmp_path / "ledger")
    del os.environ[LEDGER]


@pytest.fixture
async def hosted() -> AsyncIterator[None]:
    """A host as long as the test."""
    async with hosting():
        yield
