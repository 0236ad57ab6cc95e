"""Doors by a host name that is not served, where callers need credentials and the host has no address of its own."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django import Settings

from a2a_project.asgi import application
from a2a_project.doors import PATHS, find_door
from tests.support.access.fixtures import issuer
from tests.support.bindings.client import Client
from tests.support.rows import rows

__all__ = ["issuer"]
pytestmark = pytest.mark.django_db
METADATA = "/.well-known/oauth-protected-resource"
PLACES = [
    "/.well-known/ai-catalog.json",
    "/.well-known/ard.json",
    "/mcp",
    "/agents/demo/mcp",
    METADATA,
    f"{METADATA}/mcp",
    f"{METADATA}/agents/demo/mcp",
    "/v1/models",
    "/v1/models/demo",
    "/v1/chat/completions",
    "/agents/demo/ag-ui",
]


@pytest.fixture(autouse=True)
def guarded_host(issuer: Any, settings: Settings) -> None:
    """A host that takes tokens and is known by no name but that of the request."""
    settings.A2A_DOORS = ",".join(PATHS)
    settings.A2A_ANONYMOUS = "0"
    settings.A2A_PUBLIC_URL = ""
    settings.ALLOWED_HOSTS = ["localhost"]


def test_every_door_is_in_the_table() -> None:
    assert {find_door(place) for place in PLACES} == PATHS.keys()


@rows("method", ["GET", "HEAD", "POST", "OPTIONS"])
@rows("place", PLACES)
async def test_every_path_has_an_answer_for_a_stranger(place: str, method: str) -> None:
    head = {"host": "other.example", "content-type": "application/json"}
    answer = await Client(application).ask(method, place, b"{}", head)
    assert answer.status < 500


@rows("place", ["/mcp", "/agents/demo/mcp"])
async def test_a_challenge_names_no_address_under_that_name(place: str) -> None:
    answer = await Client(application).post(place, {}, {"host": "other.example"})
    assert answer.status == 401
    told = [text for name, text in answer.headers if name == "www-authenticate"]
    assert any(text.startswith("Bearer") for text in told)
    assert not any("resource_metadata" in text for text in told)
