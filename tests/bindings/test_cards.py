"""Agent cards over HTTP: found at the well-known place, truthful, and cheap to ask for again."""

from __future__ import annotations

import email.utils

import pytest
from pytest_django import Settings

from a2a_tasks.agents import registry
from tests.bindings.client import Client, Response

CARD = "/.well-known/agent-card.json"
DEMO = f"/agents/demo{CARD}"


@pytest.fixture(params=[CARD, DEMO, f"/agents/demo/a2a/1.0{CARD}"])
def path(request: pytest.FixtureRequest) -> str:
    """Where a card is."""
    found: str = request.param
    return found


class TestACard:
    async def test_is_public_json(self, client: Client, path: str, settings: Settings) -> None:
        """R-200."""
        settings.A2A_ANONYMOUS = "0"
        response = await client.get(path)
        assert response.status == 200
        assert response.header("content-type") == "application/json"
        assert response.header("content-length") == str(len(response.body))

    async def test_has_everything_it_must(self, client: Client, path: str) -> None:
        card = (await client.get(path)).json
        for member in (
            "name",
            "description",
            "supportedInterfaces",
            "version",
            "capabilities",
            "defaultInputModes",
            "defaultOutputModes",
            "skills",
        ):
            assert card[member], member
        for skill in card["skills"]:
            assert {"id", "name", "description", "tags"} <= skill.keys()
            assert skill["tags"]

    async def test_says_what_the_host_does_and_does_not(self, client: Client, path: str) -> None:
        """R-201."""
        capabilities = (await client.get(path)).json["capabilities"]
        assert capabilities == {
            "streaming": True,
            "pushNotifications": False,
            "extendedAgentCard": False,
        }

    @pytest.mark.django_db(transaction=True)
    async def test_leads_to_interfaces_that_answer(
        self, client: Client, path: str, host: None
    ) -> None:
        """R-160, R-201."""
        interfaces = (await client.get(path)).json["supportedInterfaces"]
        assert [i["protocolBinding"] for i in interfaces] == ["JSONRPC", "HTTP+JSON"]
        assert {i["protocolVersion"] for i in interfaces} == {"1.0"}
        rpc, rest = (i["url"].removeprefix("http://localhost:8000") for i in interfaces)
        answer = await client.post(rpc, {"jsonrpc": "2.0", "id": 1, "method": "ListTasks"})
        assert answer.json["result"]["tasks"] == []
        assert (await client.get(f"{rest}/tasks")).json["tasks"] == []

    async def test_names_the_public_address_if_there_is_one(
        self, client: Client, path: str, settings: Settings
    ) -> None:
        settings.A2A_PUBLIC_URL = "https://agents.example.com/"
        response = await client.get(path, {"host": "evil.example.com"})
        urls = {interface["url"] for interface in response.json["supportedInterfaces"]}
        assert urls == {"https://agents.example.com/agents/demo/a2a/1.0"}

    async def test_is_that_of_the_default_agent_at_the_root(
        self, client: Client, settings: Settings
    ) -> None:
        settings.A2A_DEFAULT_AGENT = "tables"
        root = (await client.get(CARD)).json
        assert root == (await client.get(f"/agents/tables{CARD}")).json
        assert root["name"] != "Demo"

    async def test_declares_extensions_and_which_are_required(
        self, client: Client, settings: Settings
    ) -> None:
        settings.A2A_DISABLED_AGENTS = ""
        card = (await client.get(f"/agents/strict{CARD}")).json
        (extension,) = card["capabilities"]["extensions"]
        assert extension["uri"] == "urn:a2a:tck:required-extension"
        assert extension["required"] is True
        bare = (await client.get(f"/agents/bare{CARD}")).json
        assert bare["capabilities"]["streaming"] is False

    async def test_is_there_for_every_agent_that_is_on(self, client: Client) -> None:
        for agent in registry.agents():
            response = await client.get(f"/agents/{agent.slug}{CARD}")
            assert response.json["name"] == agent.name


class TestAskingAgain:
    async def card(self, client: Client, path: str, **headers: str) -> Response:
        """Ask for the card."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await client.get(path, named)

    async def test_is_prepared_for_by_the_answer(self, client: Client, path: str) -> None:
        """R-202."""
        response = await self.card(client, path)
        etag = response.header("etag") or ""
        assert etag.startswith('"')
        assert etag.endswith('"')
        assert "max-age=" in (response.header("cache-control") or "")
        assert email.utils.parsedate_to_datetime(response.header("last-modified") or "").year > 2000
        assert response.header("vary") == "A2A-Version, Accept"

    async def test_gets_the_same_tag(self, client: Client, path: str) -> None:
        first, second = await self.card(client, path), await self.card(client, path)
        assert first.header("etag") == second.header("etag")

    async def test_gets_another_tag_for_another_card(self, client: Client) -> None:
        first = await client.get(DEMO)
        second = await client.get(f"/agents/tables{CARD}")
        third = await client.get(DEMO, {"host": "127.0.0.1:8000"})
        assert len({response.header("etag") for response in (first, second, third)}) == 3

    @pytest.mark.parametrize("form", ["{}", "W/{}", '"other", {}', '"other",W/{}', "*"])
    async def test_with_the_tag_gets_nothing_new(
        self, client: Client, path: str, form: str
    ) -> None:
        etag = (await self.card(client, path)).header("etag")
        response = await self.card(client, path, if_none_match=form.format(etag))
        assert (response.status, response.body) == (304, b"")
        assert response.header("etag") == etag
        assert response.header("cache-control")
        assert response.header("content-length") is None

    @pytest.mark.parametrize("form", ['"other"', "", "nonsense", "{}x"])
    async def test_with_another_tag_gets_the_card(
        self, client: Client, path: str, form: str
    ) -> None:
        etag = (await self.card(client, path)).header("etag")
        response = await self.card(client, path, if_none_match=form.format(etag))
        assert response.status == 200
        assert response.body


class TestHead:
    @pytest.mark.parametrize("where", [CARD, DEMO, "/agents/"])
    async def test_has_the_headers_of_get_and_no_body(self, client: Client, where: str) -> None:
        """RFC 9110 §8.6: a Content-Length that is not that of GET must not be sent."""
        got, head = await client.get(where), await client.ask("HEAD", where)
        assert (head.status, head.body) == (200, b"")
        assert head.header("etag") == got.header("etag")
        assert head.header("content-length") in {None, got.header("content-length")}
