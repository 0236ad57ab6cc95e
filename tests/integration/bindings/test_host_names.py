"""Where callers need no credentials, a request for another site's name is not answered: its pages may have sent it."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from a2a_project.asgi import application
from tests.support.bindings.client import Client
from tests.support.rows import rows

pytestmark = pytest.mark.django_db
LIST = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}
PUBLIC = "https://agents.example.com/base"


@pytest.fixture(autouse=True)
def anonymous(settings: Settings) -> None:
    """Anybody may call."""
    settings.A2A_ANONYMOUS = "1"
    settings.ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]"]


async def answered(name: str) -> set[int]:
    client, headers = Client(application), {"host": name, "a2a-version": "1.0"}
    answers = [
        await client.post("/agents/demo/", LIST, headers),
        await client.get("/agents/demo/tasks", headers),
        await client.get("/agents/demo/.well-known/agent-card.json", headers),
    ]
    return {answer.status for answer in answers}


@rows("public", ["", PUBLIC])
@rows("name", ["evil.example", "evil.example:8000", "localhost.evil.example", "", "127.0.0.2"])
async def test_a_name_of_another_site_is_refused(
    name: str, public: str, settings: Settings
) -> None:
    settings.A2A_PUBLIC_URL = public
    assert await answered(name) == {400}


@rows("name", ["localhost:8000", "127.0.0.1", "[::1]:8000", "LOCALHOST", "agents.example.com"])
async def test_names_of_ours_are_answered(name: str, settings: Settings) -> None:
    settings.A2A_PUBLIC_URL = PUBLIC
    assert await answered(name) == {200}


async def test_whoever_needs_credentials_may_come_by_any_name(settings: Settings) -> None:
    """As by that of a proxy's own for its backend."""
    settings.A2A_ANONYMOUS = "0"
    settings.A2A_PUBLIC_URL = PUBLIC
    client = Client(application)
    answer = await client.post("/agents/demo/", LIST, {"host": "backend", "a2a-version": "1.0"})
    assert answer.status == 401
