"""What becomes of a request before the library sees it, and of its first messages in both eras."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_project import __version__
from a2a_project.asgi import application
from a2a_tasks.access.api_keys import issue
from a2a_tasks.agents import Agent
from a2a_tasks.store.db import run_in_thread
from tests.integration.doors.mcp.raw import NEW, OLD, ask, head_of, message
from tests.support.access.fixtures import guarded, issuer
from tests.support.agents_under_test import playing
from tests.support.bindings.client import Client

__all__ = ["guarded", "issuer"]

pytestmark = pytest.mark.django_db
ERAS = pytest.mark.parametrize("version", [NEW, OLD])
CALL = {"name": "demo", "arguments": {"message": "echo hi"}}
METADATA = "/.well-known/oauth-protected-resource"


async def key(**about: Any) -> dict[str, str]:
    return {"x-api-key": (await run_in_thread(lambda: issue("test", **about))).key}


@ERAS
async def test_tools_are_listed_in_one_order_for_the_caller_alone(version: str) -> None:
    answer = await ask("tools/list", version=version)
    tools = answer.json["result"]["tools"]
    assert [tool["name"] for tool in tools] == sorted(tool["name"] for tool in tools)
    demo = next(tool for tool in tools if tool["name"] == "demo")
    assert demo["title"] == "Demo"
    assert "Skills: Echo: echo hello" in demo["description"]
    assert "outputSchema" not in demo
    assert demo["inputSchema"]["properties"]["data"]["type"] == ["object", "null"]
    if version == NEW:
        about = answer.json["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]
        assert about == {"name": "a2a-host", "version": __version__}
        assert (answer.json["result"]["ttlMs"], answer.json["result"]["cacheScope"]) == (
            60_000,
            "private",
        )


async def test_a_description_leaves_room_for_what_clients_add() -> None:
    async def run(turn: Any) -> str:
        return ""

    with playing(run, slug="wordy", description="word " * 1000):
        (tool,) = (await ask("tools/list", path="/agents/wordy/mcp")).json["result"]["tools"]
    assert len(tool["description"]) == 900


@ERAS
async def test_an_agent_has_an_address_of_its_own_with_no_other_tool(version: str) -> None:
    listed = await ask("tools/list", version=version, path="/agents/demo/mcp")
    assert [tool["name"] for tool in listed.json["result"]["tools"]] == ["demo"]

    async def run(turn: Any) -> str:
        return ""

    with playing(run, slug="other"):
        refused = await ask(
            "tools/call",
            {"name": "other", "arguments": {"message": "x"}},
            version=version,
            path="/agents/demo/mcp",
        )
    assert refused.json["error"] == {"code": -32602, "message": "Unknown tool"}
    assert (await ask("tools/list", version=version, path="/agents/nobody/mcp")).status == 404


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@ERAS
async def test_nothing_but_post_is_answered(version: str, method: str) -> None:
    """The library would leave a stream open that nobody ends."""
    answer = await Client(application).ask(method, "/mcp", headers=head_of("", {}, version))
    assert (answer.status, answer.header("allow")) == (405, "POST")


async def test_pages_of_other_sites_are_refused(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["localhost"]
    for origin, status in (
        ("https://evil.example", 403),
        ("http://localhost:3000", 200),
        ("null", 403),
    ):
        assert (await ask("tools/list", headers={"origin": origin})).status == status


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, -32700),
        (b"[]", 400, -32600),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"x","params":' + b"[" * 99 + b"]" * 99 + b"}",
            400,
            -32602,
        ),
    ],
)
@ERAS
async def test_what_is_no_message_is_refused(
    version: str, body: bytes, status: int, code: int
) -> None:
    answer = await Client(application).post("/mcp", body, head_of("x", {}, version))
    assert (answer.status, answer.json["error"]["code"]) == (status, code)


@ERAS
async def test_a_large_body_is_refused_as_soon_as_it_is_announced(
    settings: Any, version: str
) -> None:
    settings.A2A_MAX_BODY_BYTES = 1000
    big = {"name": "demo", "arguments": {"message": "x" * 2000}}
    assert (
        await ask("tools/call", big, version=version, headers={"content-length": "2200"})
    ).status == 413


async def test_only_json_is_read() -> None:
    answer = await ask("tools/list", headers={"content-type": "text/plain"})
    assert answer.status == 400


@ERAS
async def test_a_caller_without_credentials_gets_401_with_the_id_and_the_way_to_the_sign_in(
    issuer: Any, settings: Any, version: str
) -> None:
    settings.A2A_ANONYMOUS = "0"
    answer = await ask(
        "tools/list", version=version, path="/agents/demo/mcp", headers={"content-length": "500"}
    )
    assert (answer.status, answer.json["id"]) == (401, 1)
    assert answer.json["error"]["message"] == "Authentication required"
    challenges = [value for name, value in answer.headers if name == "www-authenticate"]
    (bearer,) = (value for value in challenges if value.startswith("Bearer"))
    url = bearer.partition('resource_metadata="')[2].partition('"')[0]
    assert url == f"{settings.A2A_PUBLIC_URL}{METADATA}/agents/demo/mcp"
    found = (await Client(application).get(url.removeprefix(settings.A2A_PUBLIC_URL))).json
    assert found["resource"] == f"{settings.A2A_PUBLIC_URL}/agents/demo/mcp"
    assert found["authorization_servers"] == [issuer.url]


async def test_the_metadata_names_scopes_and_does_not_tell_which_agents_there_are(
    issuer: Any, guarded: Agent
) -> None:
    client = Client(application)
    known = (await client.get(f"{METADATA}/agents/guarded/mcp")).json
    assert known["scopes_supported"] == ["invoices", "invoices:write"]
    missing = (await client.get(f"{METADATA}/agents/nobody/mcp")).json
    assert missing.keys() == (await client.get(f"{METADATA}/mcp")).json.keys()
    assert (await client.get(METADATA)).status == 200
    assert (await client.get(f"{METADATA}/other")).status == 404


async def test_without_an_issuer_there_is_no_metadata() -> None:
    assert (await Client(application).get(f"{METADATA}/mcp")).status == 404


async def test_a_token_lists_the_agents_that_it_may_use(
    issuer: Any, settings: Any, guarded: Agent
) -> None:
    settings.A2A_ANONYMOUS = "0"
    for scope, seen in (("invoices invoices:write", True), ("invoices", False)):
        token = issuer.token(aud=f"{settings.A2A_PUBLIC_URL}/agents/guarded", scope=scope)
        listed = await ask("tools/list", headers={"authorization": f"Bearer {token}"})
        assert ([tool["name"] for tool in listed.json["result"]["tools"]] == ["guarded"]) == seen


async def test_an_api_key_may_come_as_bearer_as_at_the_other_doors(settings: Any) -> None:
    settings.A2A_ANONYMOUS = "0"
    headers = {"authorization": f"Bearer {(await key())['x-api-key']}"}
    answer = await ask("tools/call", CALL, headers=headers)
    assert not answer.json["result"]["isError"]
    wrong = await ask("tools/call", CALL, headers={"authorization": "Bearer wrong"})
    assert wrong.status == 401


async def test_a_listed_agent_is_a_tool_for_those_with_a_grant(settings: Any) -> None:
    settings.A2A_ANONYMOUS, settings.A2A_GRANTS = "0", "listed"
    mine = await key()
    assert (await ask("tools/list", headers=mine)).json["result"]["tools"] == []
    refused = await ask("tools/call", CALL, headers=mine)
    assert refused.json["error"]["message"] == "Unknown tool"


@ERAS
async def test_lists_are_not_counted_and_a_call_too_many_is_answered_in_words(
    fresh: None, settings: Any, version: str
) -> None:
    settings.A2A_RATE_PER_CALLER = "1/h"
    for _ in range(3):
        assert "result" in (await ask("tools/list", version=version)).json
    first = (await ask("tools/call", CALL, version=version)).json["result"]
    assert not first["isError"]
    second = await ask("tools/call", CALL, version=version)
    assert (second.status, second.json["result"]["isError"]) == (200, True)
    assert second.json["result"]["content"][0]["text"].startswith("Busy; call again in ")


async def test_the_library_checks_heads_of_the_new_era() -> None:
    wrong = await ask("tools/call", CALL, headers={"mcp-name": "other"})
    assert (wrong.status, wrong.json["error"]["code"]) == (400, -32020)
    unknown = await ask("tools/other")
    assert (unknown.status, unknown.json["error"]["code"]) == (404, -32601)
    future = await ask("tools/list", headers={"mcp-protocol-version": "2099-01-01"})
    assert future.status == 400
    assert "error" in future.json
    body = message("tools/list", {})
    head = {**head_of("tools/list", {}), "accept": "text/html"}
    assert (await Client(application).post("/mcp", body, head)).status == 406


async def test_the_door_is_closed_unless_it_is_named(settings: Any) -> None:
    settings.A2A_DOORS = ""
    assert (await ask("tools/list")).status == 404


@pytest.mark.parametrize("version", [OLD, NEW])
async def test_a_message_of_more_values_than_the_library_reads_in_time_is_refused(
    version: str,
) -> None:
    lists: list[list[int]] = [[]] * 50_000
    arguments = {"message": lists}
    answer = await ask("tools/call", {"name": "demo", "arguments": arguments}, version=version)
    assert answer.status == 400
    assert "more than 50000 values" in answer.json["error"]["message"]
