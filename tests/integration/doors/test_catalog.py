"""The AI catalog of the host's agents."""

from __future__ import annotations

import re
from typing import Any

import pytest

from a2a_project.asgi import application
from a2a_tasks.agents import Skill, registry
from tests.support.agents_under_test import playing
from tests.support.bindings.client import Client

pytestmark = pytest.mark.django_db
PATH = "/.well-known/ai-catalog.json"
#: The form of identifiers in ai-catalog 1.0.
URN = re.compile(r"urn:air:[a-zA-Z0-9.-]+(:[a-zA-Z0-9._-]+)+")


@pytest.fixture(autouse=True)
def opened(settings: Any, host: None) -> None:
    settings.A2A_DOORS = "catalog"
    settings.A2A_PUBLIC_URL = "https://agents.example.com:8443"


async def entries() -> dict[str, dict[str, Any]]:
    """The entries by the last part of their identifiers."""
    answer = await Client(application).get(PATH)
    assert answer.status == 200
    return {entry["identifier"].rpartition(":")[2]: entry for entry in answer.json["entries"]}


async def test_names_every_agent_by_the_domain_of_the_host_and_links_its_card() -> None:
    found = await entries()
    assert found.keys() == {agent.slug for agent in registry.agents()}
    demo = found["demo"]
    assert demo["identifier"] == "urn:air:agents.example.com:agent:demo"
    assert demo["type"] == "application/a2a-agent-card+json"
    assert demo["url"].startswith("https://agents.example.com:8443/agents/demo/")
    card = await Client(application).get(demo["url"].partition(":8443")[2])
    assert card.json["name"] == demo["displayName"]
    assert all(URN.fullmatch(entry["identifier"]) for entry in found.values())


async def test_has_two_to_five_queries_or_none() -> None:
    """The schema refuses one, and an empty list."""

    async def run(turn: Any) -> str:
        return "x"

    for count, kept in ((0, 0), (1, 0), (2, 2), (9, 5)):
        skill = Skill("s", "S", "It does.", tags=["t"], examples=[f"q {n}" for n in range(count)])
        with playing(run, slug="asked", skills=[skill]):
            entry = (await entries())["asked"]
        assert len(entry.get("representativeQueries", ())) == kept
        assert ("representativeQueries" in entry) == bool(kept)


async def test_has_two_names_and_an_etag() -> None:
    client = Client(application)
    one, two = [await client.get(path) for path in (PATH, "/.well-known/ard.json")]
    assert one.body == two.body
    etag = dict(one.headers)["etag"]
    assert (await client.get(PATH, {"if-none-match": etag})).status == 304
    assert (await client.post(PATH, b"{}")).status == 405


async def test_is_not_there_unless_it_is_switched_on(settings: Any) -> None:
    settings.A2A_DOORS = ""
    assert (await Client(application).get(PATH)).status == 404


async def test_without_a_public_url_it_is_for_this_machine_alone(settings: Any) -> None:
    settings.A2A_PUBLIC_URL, settings.ALLOWED_HOSTS = "", ["*"]
    local = await Client(application).get(PATH, {"host": "127.0.0.1:8000"})
    assert local.json["host"]["displayName"] == "localhost"
    other = await Client(application).get(PATH, {"host": "agents.example.com"})
    assert other.status == 404
    assert "A2A_PUBLIC_URL" in other.json["error"]["message"]
