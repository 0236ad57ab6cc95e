"""Agent cards over HTTP: found at the well-known places, in the reader's dialect, and cheap to ask for again."""

from __future__ import annotations

import email.utils
from typing import Any

import pytest
from a2a.client.card_resolver import parse_agent_card
from pytest_django import Settings

from a2a_tasks.agents import registry
from a2a_tasks.checks import check_settings
from a2a_tasks.operations.cards import FORMS
from a2a_tasks.protocol.mounts import MOUNTS
from tests.support.bindings.client import Client, Response
from tests.support.protocol.card_schemas import check, parsed
from tests.support.rows import rows

HOST = "http://localhost:8000"
CARD = "/.well-known/agent-card.json"
OLDER = "/.well-known/agent.json"
NAMES = (CARD, OLDER)
DEMO = f"/agents/demo{CARD}"
#: Where the request is looked at.
DETECTING = ("", "/agents/demo", "/agents/demo/a2a")
PINNED = {code: f"/agents/demo/{mount.path}" for code, mount in MOUNTS.items()}
#: By A2A-Version: the dialect it asks for.
VERSIONS = {"1.0": "v10", "0.3": "v03", "0.2": "v02", "0.1": "v01", "0.0": "v00"}
OF_03 = {"url", "preferredTransport", "additionalInterfaces", "protocolVersion"}


def is_hybrid(card: dict[str, Any]) -> bool:
    return {"supportedInterfaces", *OF_03} <= card.keys()


def is_form(form: str, card: dict[str, Any]) -> bool:
    """Is this the strict card of a dialect, with the dialect's own URL?"""
    check(form, card)
    url = f"{HOST}{PINNED[form]}"
    if form == "v10":
        return bool(card["supportedInterfaces"][0]["url"] == url)
    return bool(card["url"] == url)


#: Where a card is.
every_path = rows(
    "path", [CARD, DEMO, f"/agents/demo/a2a{CARD}", *(base + CARD for base in PINNED.values())]
)


class TestWhoAsksForACard:
    @rows("name", NAMES)
    @rows("form", PINNED)
    async def test_at_a_pinned_mount_gets_that_of_the_dialect_and_may_name_any_version_spoken_here(
        self, client: Client, form: str, name: str
    ) -> None:
        for version in ("", *VERSIONS):
            response = await client.get(PINNED[form] + name, {"a2a-version": version})
            assert response.status == 200
            assert is_form(form, response.json)
        response = await client.get(PINNED[form] + name, {"a2a-version": "0.5"})
        assert response.status == 400
        assert response.header("etag") is None

    @rows("base", DETECTING)
    async def test_without_a_version_gets_one_card_for_both(
        self, client: Client, base: str
    ) -> None:
        card = (await client.get(base + CARD)).json
        assert is_hybrid(card)
        assert card["url"] == f"{HOST}{PINNED['v03']}"
        parsed(card, lenient=True)
        read = parse_agent_card(card)
        assert {i.protocol_version for i in read.supported_interfaces} == {"1.0", "0.3"}

    @rows("base", DETECTING)
    @rows(("default", "form"), [("1.0", "v10"), ("0.3", "v03")])
    async def test_without_a_version_gets_what_the_setting_says(
        self, client: Client, settings: Settings, base: str, default: str, form: str
    ) -> None:
        settings.A2A_CARD_DEFAULT = default
        assert is_form(form, (await client.get(base + CARD)).json)
        assert is_form("v10", (await client.get(base + CARD, {"a2a-version": "1.0"})).json)

    @rows("base", DETECTING)
    @rows("version", VERSIONS)
    async def test_with_a_version_gets_that(self, client: Client, base: str, version: str) -> None:
        """R-121, R-123; the patch number says nothing (R-120)."""
        for asked in (version, f"{version}.7", f" {version} "):
            response = await client.get(base + CARD, {"a2a-version": asked})
            assert is_form(VERSIONS[version], response.json)
        response = await client.get(f"{base}{CARD}?A2A-Version={version}")
        assert is_form(VERSIONS[version], response.json)

    @rows("name", NAMES)
    @rows(
        ("base", "version"),
        [*((DETECTING[0], v) for v in ("0.5", "abc", "v1.0", "1", "1.0.0.0"))]
        + [(base, "2.0") for base in (*DETECTING, *PINNED.values())],
    )
    async def test_with_a_version_nobody_speaks_is_told_so(
        self, client: Client, base: str, name: str, version: str
    ) -> None:
        """R-121: never another version in its place."""
        for response in (
            await client.get(base + name, {"a2a-version": version}),
            await client.get(f"{base}{name}?A2A-Version={version}"),
        ):
            assert response.status == 400
            assert b"ersion" in response.body

    @rows("base", DETECTING)
    async def test_with_two_versions_is_told_so(self, client: Client, base: str) -> None:
        for query, status in (("0.3", 400), ("abc", 400), ("", 200), ("1.0.3", 200)):
            where = f"{base}{CARD}?A2A-Version={query}"
            assert (await client.get(where, {"a2a-version": "1.0"})).status == status

    @rows("base", DETECTING)
    @rows("headers", [{}, {"a2a-version": ""}, {"a2a-version": "0.2"}])
    async def test_by_the_older_name_gets_one_that_readers_of_0_0_to_0_2_understand(
        self, client: Client, base: str, headers: dict[str, str]
    ) -> None:
        card = (await client.get(base + OLDER, headers)).json
        check("legacy", card)
        assert card["url"] == f"{HOST}/agents/demo/a2a"
        oldest = {"name", "url", "version", "capabilities", "skills", "authentication"}
        assert oldest <= card.keys()

    @rows("name", NAMES)
    @rows(
        "base",
        [
            "/agents/nobody",
            "/agents/nobody/a2a/1.0",
            "/agents/demo/a2a/9.9",
            "/agents/demo/a2a/1.0/a2a",
            "/agents/demo/acme",
        ],
    )
    async def test_where_there_is_none_is_told_so(
        self, client: Client, base: str, name: str
    ) -> None:
        assert (await client.get(base + name)).status == 404

    @rows("name", NAMES)
    @rows("base", [*DETECTING, PINNED["v03"], PINNED["v10"]])
    @rows("verb", ["POST", "PUT", "DELETE", "PATCH"])
    async def test_with_another_verb_is_told_so(
        self, client: Client, base: str, name: str, verb: str
    ) -> None:
        response = await client.ask(verb, base + name)
        assert response.status == 405
        assert response.header("allow") == "GET, HEAD"

    async def test_at_a_place_of_a_setting_that_is_none_never_starts(
        self, settings: Settings
    ) -> None:
        settings.A2A_CARD_DEFAULT = "0.4"
        assert "a2a_tasks.E015" in [message.id for message in check_settings()]

    def test_of_each_form_there_is_a_maker(self) -> None:
        assert FORMS.keys() == {*MOUNTS, "hybrid", "legacy"}


class TestACard:
    @every_path
    async def test_is_public_json(self, client: Client, path: str, settings: Settings) -> None:
        settings.A2A_ANONYMOUS = "0"
        response = await client.get(path)
        assert response.status == 200
        assert response.header("content-type") == "application/json"
        assert response.header("content-length") == str(len(response.body))

    @every_path
    async def test_says_what_the_host_does_and_does_not(self, client: Client, path: str) -> None:
        capabilities = (await client.get(path)).json["capabilities"]
        demo = registry.find_hosted("demo")
        assert demo is not None
        assert capabilities["streaming"] is True
        assert capabilities["pushNotifications"] is demo.push_notifications
        assert not capabilities.get("extendedAgentCard")

    @pytest.mark.django_db
    async def test_leads_to_interfaces_that_answer(self, client: Client, host: None) -> None:
        interfaces = (await client.get(DEMO)).json["supportedInterfaces"]
        assert [(i["protocolVersion"], i["protocolBinding"]) for i in interfaces] == [
            ("1.0", "JSONRPC"),
            ("1.0", "HTTP+JSON"),
            ("0.3", "JSONRPC"),
            ("0.3", "HTTP+JSON"),
        ]
        rpc, rest = (i["url"].removeprefix(HOST) for i in interfaces[:2])
        answer = await client.post(rpc, {"jsonrpc": "2.0", "id": 1, "method": "ListTasks"})
        assert answer.json["result"]["tasks"] == []
        assert (await client.get(f"{rest}/tasks")).json["tasks"] == []

    async def test_of_1_0_is_read_by_the_official_types_to_the_letter(self, client: Client) -> None:
        for agent in registry.agents():
            card = (await client.get(f"/agents/{agent.slug}/a2a/1.0{CARD}")).json
            assert parsed(card).name == agent.name

    @every_path
    async def test_names_the_public_address_if_there_is_one(
        self, client: Client, path: str, settings: Settings
    ) -> None:
        settings.A2A_PUBLIC_URL = "https://agents.example.com/"
        settings.A2A_ANONYMOUS = (
            "0"  # with callers nobody knows, the host answers to its own names alone
        )
        response = await client.get(path, {"host": "evil.example.com"})
        assert b"evil" not in response.body
        assert response.body.count(b"https://agents.example.com/agents/demo/a2a") >= 1

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
        extension, *hosts = card["capabilities"]["extensions"]
        assert extension["uri"] == "urn:a2a:tck:required-extension"
        assert extension["required"] is True
        assert not any(other.get("required") for other in hosts)
        bare = (await client.get(f"/agents/bare{CARD}")).json
        assert bare["capabilities"]["streaming"] is False
        assert bare["capabilities"].get("pushNotifications", False) is False

    async def test_declares_what_the_host_adds_to_the_protocol(
        self, client: Client, settings: Settings
    ) -> None:
        settings.A2A_DISABLED_AGENTS = ""
        for slug, declares in (
            ("demo", ["resumable-streams", "idempotent-sends"]),
            ("bare", ["idempotent-sends"]),
        ):
            card = (await client.get(f"/agents/{slug}{CARD}")).json
            found = [extension["uri"] for extension in card["capabilities"]["extensions"]]
            assert found == [f"urn:a2a-host:extensions:{name}:1" for name in declares]


class TestAskingAgain:
    async def card(self, client: Client, path: str, **headers: str) -> Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await client.get(path, named)

    @every_path
    async def test_is_prepared_for_by_the_answer(self, client: Client, path: str) -> None:
        response = await self.card(client, path)
        etag = response.header("etag") or ""
        assert etag.startswith('"')
        assert etag.endswith('"')
        assert "max-age=" in (response.header("cache-control") or "")
        assert email.utils.parsedate_to_datetime(response.header("last-modified") or "").year > 2000
        assert response.header("vary") == "A2A-Version, Accept"

    async def test_gets_another_tag_for_another_card(self, client: Client) -> None:
        first = await client.get(DEMO)
        second = await client.get(f"/agents/tables{CARD}")
        third = await client.get(DEMO, {"host": "127.0.0.1:8000"})
        assert len({response.header("etag") for response in (first, second, third)}) == 3

    async def test_gets_another_tag_for_another_form(self, client: Client) -> None:
        found = [await client.get(DEMO, {"a2a-version": version}) for version in ("", *VERSIONS)]
        found.append(await client.get(f"/agents/demo{OLDER}"))
        assert len({response.header("etag") for response in found}) == len(found)

    async def test_with_the_tag_of_another_form_gets_the_card(self, client: Client) -> None:
        """A cache between knows from Vary; one that does not must not be told that nothing changed."""
        etag = (await client.get(DEMO, {"a2a-version": "1.0"})).header("etag") or ""
        asked = {"a2a-version": "0.3", "if-none-match": etag}
        assert is_form("v03", (await client.get(DEMO, asked)).json)

    @rows(
        ("path", "form"),
        [*((DEMO, form) for form in ("{}", "W/{}", '"other", {}', '"other",W/{}', "*"))]
        + [(path, "{}") for path in (CARD, *(base + CARD for base in PINNED.values()))],
    )
    async def test_with_the_tag_gets_nothing_new(
        self, client: Client, path: str, form: str
    ) -> None:
        etag = (await self.card(client, path)).header("etag")
        response = await self.card(client, path, if_none_match=form.format(etag))
        assert (response.status, response.body) == (304, b"")
        assert response.header("etag") == etag
        assert response.header("cache-control")
        assert response.header("content-length") is None

    @rows("path", [CARD, DEMO])
    @rows("form", ['"other"', "", "nonsense", "{}x"])
    async def test_with_another_tag_gets_the_card(
        self, client: Client, path: str, form: str
    ) -> None:
        etag = (await self.card(client, path)).header("etag")
        response = await self.card(client, path, if_none_match=form.format(etag))
        assert response.status == 200
        assert response.body


class TestHead:
    @rows(
        "where",
        [
            CARD,
            DEMO,
            OLDER,
            f"/agents/demo{OLDER}",
            *(b + CARD for b in PINNED.values()),
            "/agents/",
        ],
    )
    async def test_has_the_headers_of_get_and_no_body(self, client: Client, where: str) -> None:
        """RFC 9110 §8.6: a Content-Length that is not that of GET must not be sent."""
        got, head = await client.get(where), await client.ask("HEAD", where)
        assert (head.status, head.body) == (200, b"")
        assert head.header("etag") == got.header("etag")
        assert head.header("content-length") in {None, got.header("content-length")}

    async def test_of_a_version_nobody_speaks_has_no_body_either(self, client: Client) -> None:
        head = await client.ask("HEAD", CARD, headers={"a2a-version": "9.9"})
        assert (head.status, head.body) == (400, b"")


async def test_an_extension_of_the_host_that_is_asked_for_is_in_force(
    client: Client, host: None, db: None
) -> None:
    uri = "urn:a2a-host:extensions:idempotent-sends:1"
    asked = {"a2a-extensions": f"urn:unknown, {uri}"}
    assert (await client.get("/agents/demo/tasks", asked)).header("a2a-extensions") == uri


class TestTheWayInByGrpc:
    async def interfaces(self, client: Client, path: str, version: str = "1.0") -> list[Any]:
        card = (await client.get(path, {"a2a-version": version})).json
        found = card.get("supportedInterfaces") or card["additionalInterfaces"]
        return [one for one in found if "GRPC" in one.values()]

    async def test_is_not_in_cards_unless_the_operator_names_it(
        self, client: Client, settings: Settings
    ) -> None:
        settings.A2A_GRPC_PORT = 50051
        for version in ("1.0", "0.3"):
            assert await self.interfaces(client, CARD, version) == []

    @rows(
        "named, url",
        [
            ("https://grpc.example.com", "https://grpc.example.com"),
            ("http://127.0.0.1:50051/", "http://127.0.0.1:50051"),
            ("grpc.example.com:443", "https://grpc.example.com:443"),
        ],
    )
    async def test_is_an_absolute_url_in_every_card(
        self, client: Client, settings: Settings, named: str, url: str
    ) -> None:
        settings.A2A_GRPC_URL = named
        way = {"url": url, "protocolBinding": "GRPC"}
        assert await self.interfaces(client, CARD) == [
            {**way, "protocolVersion": "1.0"},
            {**way, "protocolVersion": "0.3"},
        ]
        assert await self.interfaces(client, CARD, "0.3") == [{"url": url, "transport": "GRPC"}]
        assert await self.interfaces(client, f"/agents/demo/a2a/1.0-draft{CARD}") == [way]

    async def test_has_the_agent_as_its_tenant_which_0_3_cannot_say(
        self, client: Client, settings: Settings
    ) -> None:
        settings.A2A_GRPC_URL = "http://127.0.0.1:50051"
        path = f"/agents/tables{CARD}"
        (only,) = await self.interfaces(client, path)
        assert (only["tenant"], only["protocolVersion"]) == ("tables", "1.0")
        assert await self.interfaces(client, path, "0.3") == []
