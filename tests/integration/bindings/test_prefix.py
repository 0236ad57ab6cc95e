"""Below A2A_PREFIX, every binding is served, and every address is written."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from a2a_grpc.binding.call import GrpcCall
from a2a_grpc.binding.call_request import call_request
from a2a_project.asgi import routes
from a2a_project.routing import Routes
from a2a_push.keys import issuer
from a2a_tasks.access.tokens import audience
from a2a_tasks.execution.sources import url_of
from tests.support.bindings.client import Client

pytestmark = pytest.mark.usefixtures("host")


@pytest.fixture(autouse=True)
def below(settings: Any) -> None:
    """The prefix."""
    settings.A2A_PREFIX = "/a2a"


async def test_a_card_is_there_with_addresses_below_it() -> None:
    answer = await Client(routes).ask("GET", "/a2a/agents/demo/.well-known/agent-card.json")
    urls = [one["url"] for one in json.loads(answer.body)["additionalInterfaces"]]
    assert answer.status == 200
    assert any("/a2a/agents/demo/" in url for url in urls)


@pytest.mark.parametrize(
    "path", ["/a2a/healthz", "/a2a/agents/", "/a2a/.well-known/agent-card.json"]
)
async def test_it_serves_what_the_root_served(path: str) -> None:
    assert (await Client(routes).ask("GET", path)).status == 200


@pytest.mark.parametrize(
    "path", ["/a2ab/agents/", "/.well-known/agent-card.json", "/healthz", "/metrics"]
)
async def test_other_paths_are_the_projects(path: str) -> None:
    answer = await Client(routes).ask("GET", path)
    assert answer.status == 404
    assert (answer.header("content-type") or "").startswith("text/html")


@pytest.mark.parametrize("kind", ["http", "websocket"])
async def test_the_projects_application_gets_them_unchanged(kind: str) -> None:
    came: list[tuple[Any, ...]] = []

    async def project(*call: Any) -> None:
        came.append(call)

    call = {"type": kind, "path": "/a2ab/", "headers": [(b"host", b"strange")]}, object(), object()
    await Routes(project).by_type(*call)
    assert came == [call]


def test_addresses_without_a_request_have_it(settings: Any) -> None:
    settings.A2A_PUBLIC_URL = "https://shop.example/"
    assert url_of("t") == "https://shop.example/a2a/handover/t"
    assert issuer() == "https://shop.example/a2a"
    assert audience("demo") == "https://shop.example/a2a/agents/demo"


def test_addresses_in_answers_to_grpc_have_a_name_that_is_served(settings: Any) -> None:
    settings.ALLOWED_HOSTS = [".shop.example", "127.0.0.1"]
    call = SimpleNamespace(metadata=[(b"host", b"strange")], peer=("127.0.0.1", 1))
    assert call_request(cast("GrpcCall", call)).base_url.startswith("http://shop.example:")
