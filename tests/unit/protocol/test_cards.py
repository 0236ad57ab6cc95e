"""The card of every dialect: strict by its schema, nothing lost that the dialect can say, nothing promised too much."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from a2a.client.card_resolver import parse_agent_card
from a2a.compat.v0_3 import types as of_03
from hypothesis import given
from hypothesis import strategies as st

from a2a_tasks.protocol.dialects import cards
from tests.support.protocol.card_schemas import check, parsed

HOST = "https://h/agents/x/a2a"
BINDINGS = ("JSONRPC", "HTTP+JSON")

Make = Callable[[Mapping[str, Any]], dict[str, Any]]

#: By form: how the host makes it of its own card.
FORMS: dict[str, Make] = {
    "s0": lambda card: cards.oldest(card, f"{HOST}/seed-0"),
    "v00": lambda card: cards.oldest(card, f"{HOST}/0.0"),
    "v01": lambda card: cards.oldest(card, f"{HOST}/0.1"),
    "v02": lambda card: cards.v02(card, f"{HOST}/0.2"),
    "v03": lambda card: cards.v03(card, f"{HOST}/0.3"),
    "dr": lambda card: cards.draft(card, f"{HOST}/1.0-draft"),
    "v10": cards.final,
    "legacy": lambda card: cards.legacy(card, HOST),
}
ALL: dict[str, Make] = {**FORMS, "hybrid": lambda card: cards.hybrid(card, f"{HOST}/0.3")}
REQUIRED = (
    "name",
    "description",
    "version",
    "capabilities",
    "defaultInputModes",
    "defaultOutputModes",
    "skills",
)


def interface(version: str, binding: str, **more: str) -> dict[str, str]:
    """An entry of `supportedInterfaces`."""
    url = f"{HOST}/{version}"
    return {"url": url, "protocolBinding": binding, "protocolVersion": version, **more}


def needs(*alternatives: Mapping[str, list[str]]) -> list[dict[str, Any]]:
    """Requirements as 1.0 has them."""
    return [
        {"schemes": {name: {"list": scopes} for name, scopes in one.items()}}
        for one in alternatives
    ]


FLOW = {"authorizationUrl": "https://a", "tokenUrl": "https://t", "scopes": {"read": "Reads"}}
DEVICE = {"deviceAuthorizationUrl": "https://d", "tokenUrl": "https://t", "scopes": {}}
SCHEMES: dict[str, Any] = {
    "key": {
        "apiKeySecurityScheme": {"description": "A key", "location": "header", "name": "X-Key"}
    },
    "token": {"httpAuthSecurityScheme": {"scheme": "bearer", "bearerFormat": "JWT"}},
    "basic": {"httpAuthSecurityScheme": {"scheme": "Basic"}},
    "oauth": {
        "oauth2SecurityScheme": {
            "flows": {"authorizationCode": {**FLOW, "pkceRequired": True}},
            "oauth2MetadataUrl": "https://m",
        }
    },
    "device": {"oauth2SecurityScheme": {"flows": {"deviceCode": DEVICE}}},
    "oidc": {"openIdConnectSecurityScheme": {"openIdConnectUrl": "https://o"}},
    "mtls": {"mtlsSecurityScheme": {}},
}
FULL: dict[str, Any] = {
    "name": "Full",
    "description": "Has everything.",
    "supportedInterfaces": [
        *(interface("1.0", binding) for binding in BINDINGS),
        *(interface("0.3", binding) for binding in BINDINGS),
        interface("0.2", "JSONRPC"),
        interface("0.1", "JSONRPC"),
        interface("0.0", "JSONRPC"),
    ],
    "provider": {"organization": "Org", "url": "https://org"},
    "version": "1.2.3",
    "documentationUrl": "https://docs",
    "capabilities": {
        "streaming": True,
        "pushNotifications": False,
        "extensions": [{"uri": "urn:e", "required": True, "params": {"a": [1]}}],
        "extendedAgentCard": True,
    },
    "securitySchemes": SCHEMES,
    "securityRequirements": needs(
        {"token": []}, {"oauth": ["read"], "mtls": []}, {"device": [], "key": []}, {"basic": []}
    ),
    "defaultInputModes": ["text/plain", "application/json", "image/png"],
    "defaultOutputModes": ["text/plain"],
    "skills": [
        {
            "id": "one",
            "name": "One",
            "description": "First",
            "tags": ["a"],
            "examples": ["do it"],
            "outputModes": ["application/json"],
            "securityRequirements": needs({"key": []}),
        },
        {"id": "two", "name": "Two", "description": "Second", "tags": ["b"]},
    ],
    "signatures": [{"protected": "e30", "signature": "AA"}],
    "iconUrl": "https://icon",
}

# any card of 1.0
words = st.text(st.characters(codec="utf-8"), max_size=8)
texts = st.lists(words, max_size=3)
scopes = st.dictionaries(words, words, max_size=2)


def some(required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects of these members."""
    return st.fixed_dictionaries(required, optional=optional)


def flows() -> st.SearchStrategy[dict[str, Any]]:
    """One flow, of any kind."""
    at, token, more = {"authorizationUrl": words}, {"tokenUrl": words}, {"refreshUrl": words}
    scoped = {"scopes": scopes}
    return st.one_of(
        some(
            {
                "authorizationCode": some(
                    {**at, **token, **scoped}, {**more, "pkceRequired": st.booleans()}
                )
            },
            {},
        ),
        some({"clientCredentials": some({**token, **scoped}, more)}, {}),
        some({"implicit": some({**at, **scoped}, more)}, {}),
        some({"password": some({**token, **scoped}, more)}, {}),
        some({"deviceCode": some({"deviceAuthorizationUrl": words, **token, **scoped}, more)}, {}),
    )


def schemes() -> st.SearchStrategy[dict[str, Any]]:
    """One scheme, of any kind."""
    about = {"description": words}
    place = st.sampled_from(["header", "query", "cookie"])
    bodies = {
        "apiKeySecurityScheme": some({"location": place, "name": words}, about),
        "httpAuthSecurityScheme": some({"scheme": words}, {**about, "bearerFormat": words}),
        "oauth2SecurityScheme": some({"flows": flows()}, {**about, "oauth2MetadataUrl": words}),
        "openIdConnectSecurityScheme": some({"openIdConnectUrl": words}, about),
        "mtlsSecurityScheme": some({}, about),
    }
    return st.one_of([some({name: body}, {}) for name, body in bodies.items()])


names = st.sampled_from(["a", "b", "c", "d"])
requirements = st.lists(
    some({"schemes": st.dictionaries(names, some({}, {"list": texts}), max_size=2)}, {}), max_size=3
)
skills = some(
    {"id": words, "name": words, "description": words, "tags": texts},
    {
        "examples": texts,
        "inputModes": texts,
        "outputModes": texts,
        "securityRequirements": requirements,
    },
)
extensions = some(
    {"uri": words},
    {
        "description": words,
        "required": st.booleans(),
        "params": st.dictionaries(words, st.none() | st.booleans() | words, max_size=2),
    },
)
interfaces = some(
    {
        "url": st.sampled_from([HOST, f"{HOST}/1.0", f"{HOST}/0.3", f"{HOST}/0.2"]),
        "protocolBinding": st.sampled_from([*BINDINGS, "GRPC"]),
        "protocolVersion": st.sampled_from(["1.0", "0.3", "0.3.0", "0.2", "0.1", "0.0"]),
    },
    {"tenant": words},
)
any_cards = some(
    {
        "name": words,
        "description": words,
        "supportedInterfaces": st.lists(interfaces, min_size=1, max_size=4),
        "version": words,
        "capabilities": some(
            {},
            {
                "streaming": st.booleans(),
                "pushNotifications": st.booleans(),
                "extendedAgentCard": st.booleans(),
                "extensions": st.lists(extensions, max_size=2),
            },
        ),
        "defaultInputModes": texts,
        "defaultOutputModes": texts,
        "skills": st.lists(skills, max_size=2),
    },
    {
        "provider": some({"organization": words, "url": words}, {}),
        "documentationUrl": words,
        "iconUrl": words,
        "securitySchemes": st.dictionaries(names, schemes(), max_size=4),
        "securityRequirements": requirements,
        "signatures": st.lists(some({"protected": words, "signature": words}, {}), max_size=1),
    },
)


class TestAnyCard:
    @pytest.mark.parametrize("form", FORMS)
    @given(card=any_cards)
    def test_is_strict_in_every_dialect(self, form: str, card: dict[str, Any]) -> None:
        check(form, FORMS[form](card))

    @pytest.mark.parametrize("form", ALL)
    @given(card=any_cards, lost=st.sets(st.sampled_from(REQUIRED)), null=st.booleans())
    def test_never_loses_a_required_member(
        self, form: str, card: dict[str, Any], lost: set[str], null: bool
    ) -> None:
        """Also when whoever made it (an agent's extended card) forgot one."""
        short = {name: value for name, value in card.items() if name not in lost}
        told = ALL[form]({**short, **(dict.fromkeys(lost) if null else {})})
        for name in REQUIRED:
            assert type(told[name]) is type(card[name])
        check(form, told) if form in FORMS else parsed(told, lenient=True)

    @pytest.mark.parametrize("form", ALL)
    @given(card=any_cards)
    def test_is_left_as_it_was(self, form: str, card: dict[str, Any]) -> None:
        before = copy.deepcopy(card)
        ALL[form](card)
        assert card == before

    @pytest.mark.parametrize("form", ALL)
    @given(card=any_cards)
    def test_says_the_same_of_the_agent(self, form: str, card: dict[str, Any]) -> None:
        told = ALL[form](card)
        for name in ("name", "description", "version", "documentationUrl", "provider"):
            assert told.get(name) == card.get(name)
        for name in ("streaming", "pushNotifications"):
            assert told["capabilities"].get(name, False) == card["capabilities"].get(name, False)
        assert [s["id"] for s in told["skills"]] == [s["id"] for s in card["skills"]]
        assert [s["tags"] for s in told["skills"]] == [s["tags"] for s in card["skills"]]

    @given(card=any_cards)
    def test_of_1_0_is_whole_and_parses_by_the_official_types(self, card: dict[str, Any]) -> None:
        assert parsed(cards.final(card)) == parsed(card)

    @given(card=any_cards)
    def test_of_1_0_drops_what_1_0_has_not(self, card: dict[str, Any]) -> None:
        foreign = {"url": "u", "preferredTransport": "JSONRPC", "security": [{}], "x": 1}
        more = {**card, **foreign, "capabilities": {**card["capabilities"], "x": 1}}
        assert cards.final(more) == cards.final(card)

    @given(card=any_cards)
    def test_as_a_hybrid_is_read_by_both_generations(self, card: dict[str, Any]) -> None:
        told = ALL["hybrid"](card)
        new, old = cards.final(card), FORMS["v03"](card)
        of_03.AgentCard.model_validate(told)
        for document in (parsed(told, lenient=True), parse_agent_card(copy.deepcopy(told))):
            del document.skills[:]
            assert document == parsed({**new, "skills": []})
        assert {name for name in told if name not in new} <= {
            "url",
            "preferredTransport",
            "additionalInterfaces",
            "protocolVersion",
            "security",
            "supportsAuthenticatedExtendedCard",
        }
        assert {name: told[name] for name in old if name not in new} == {
            name: old[name] for name in old if name not in new
        }

    @given(card=any_cards)
    def test_of_0_3_is_read_by_the_official_types(self, card: dict[str, Any]) -> None:
        told = FORMS["v03"](card)
        read = of_03.AgentCard.model_validate(told)
        assert read.model_dump(mode="json", by_alias=True, exclude_unset=True) == told

    @pytest.mark.parametrize("form", ["v02", "v03", "dr"])
    @given(card=any_cards)
    def test_names_no_scheme_it_does_not_declare_and_halves_no_requirement(
        self, form: str, card: dict[str, Any]
    ) -> None:
        told = FORMS[form](card)
        declared = told.get("securitySchemes", {}).keys()
        own = [set(one["schemes"]) for one in card.get("securityRequirements", [])]
        for one in told.get("security", []):
            asked = set(one["schemes"] if form == "dr" else one)
            assert asked <= declared
            assert asked in own

    @given(card=any_cards)
    def test_says_the_main_way_in_first(self, card: dict[str, Any]) -> None:
        told = FORMS["v03"](card)
        main = {"url": f"{HOST}/0.3", "transport": told["preferredTransport"]}
        assert told["url"] == main["url"]
        assert told["additionalInterfaces"][0] == main
        assert told["additionalInterfaces"].count(main) == 1

    @pytest.mark.parametrize("form", ["v00", "v02", "v03", "dr", "legacy"])
    @given(card=any_cards)
    def test_loses_its_signatures_with_its_form(self, form: str, card: dict[str, Any]) -> None:
        """A signature is over the card of 1.0."""
        assert "signatures" not in FORMS[form](card)
        assert ALL["hybrid"](card).get("signatures") == card.get("signatures")


class TestSchemes:
    def test_are_openapis_in_0_3(self) -> None:
        told = FORMS["v03"](FULL)
        assert told["securitySchemes"] == {
            "key": {"type": "apiKey", "description": "A key", "in": "header", "name": "X-Key"},
            "token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
            "basic": {"type": "http", "scheme": "Basic"},
            "oauth": {
                "type": "oauth2",
                "flows": {"authorizationCode": FLOW},
                "oauth2MetadataUrl": "https://m",
            },
            "oidc": {"type": "openIdConnect", "openIdConnectUrl": "https://o"},
            "mtls": {"type": "mutualTLS"},
        }
        assert told["security"] == [
            {"token": []},
            {"oauth": ["read"], "mtls": []},
            {"basic": []},
        ]
        assert [skill.get("security") for skill in told["skills"]] == [[{"key": []}], None]

    def test_are_fewer_in_0_2(self) -> None:
        told = FORMS["v02"](FULL)
        assert told["securitySchemes"].keys() == {"key", "token", "basic", "oauth", "oidc"}
        assert told["securitySchemes"]["oauth"] == {
            "type": "oauth2",
            "flows": {"authorizationCode": FLOW},
        }
        assert told["security"] == [{"token": []}, {"basic": []}]
        assert "security" not in told["skills"][0]

    def test_are_wrapped_in_the_draft(self) -> None:
        told = FORMS["dr"](FULL)
        assert told["securitySchemes"] == {
            **{name: scheme for name, scheme in SCHEMES.items() if name not in {"oauth", "device"}},
            "oauth": {
                "oauth2SecurityScheme": {
                    "flows": {"authorizationCode": FLOW},
                    "oauth2MetadataUrl": "https://m",
                }
            },
        }
        assert told["security"] == needs(
            {"token": []}, {"oauth": ["read"], "mtls": []}, {"basic": []}
        )
        assert told["skills"][0]["security"] == needs({"key": []})

    def test_are_names_of_http_in_the_oldest(self) -> None:
        assert FORMS["v00"](FULL)["authentication"] == {"schemes": ["bearer", "Bearer", "Basic"]}
        assert FORMS["legacy"](FULL)["authentication"] == {"schemes": ["bearer", "Bearer", "Basic"]}
        assert FORMS["v01"]({})["authentication"] == {"schemes": []}

    def test_are_spelt_twice_in_a_hybrid(self) -> None:
        told = ALL["hybrid"](FULL)["securitySchemes"]
        assert told["key"] == {
            **SCHEMES["key"],
            "type": "apiKey",
            "description": "A key",
            "in": "header",
            "name": "X-Key",
        }
        assert told["mtls"] == {"mtlsSecurityScheme": {}, "type": "mutualTLS"}
        assert told["device"] == {
            **SCHEMES["device"],
            "type": "oauth2",
            "flows": {"deviceCode": DEVICE},
        }

    @pytest.mark.parametrize("form", FORMS)
    def test_that_are_unheard_of_are_left_out(self, form: str) -> None:
        odd: dict[str, Any] = {
            "odd": {"carrierPigeonSecurityScheme": {}},
            "empty": {"oauth2SecurityScheme": {}},
        }
        told = FORMS[form]({**FULL, "securitySchemes": odd})
        check(form, told)
        assert "securitySchemes" not in told

    def test_may_be_none_of_several_that_will_do(self) -> None:
        """An empty alternative: anonymous callers are welcome too."""
        card = {**FULL, "securityRequirements": [{"schemes": {"token": {}}}, {"schemes": {}}]}
        assert FORMS["v03"](card)["security"] == [{"token": []}, {}]
        assert FORMS["v10"](card)["securityRequirements"] == needs({"token": []}, {})


class TestWaysIn:
    def test_are_those_of_the_readers_version(self) -> None:
        told = FORMS["v03"](FULL)
        assert told["url"] == f"{HOST}/0.3"
        assert told["preferredTransport"] == "JSONRPC"
        assert told["additionalInterfaces"] == [
            {"url": f"{HOST}/0.3", "transport": binding} for binding in BINDINGS
        ]
        assert FORMS["v02"](FULL)["additionalInterfaces"] == [
            {"url": f"{HOST}/0.2", "transport": "JSONRPC"}
        ]

    def test_of_the_draft_are_told_by_its_members_and_the_deprecated_ones(self) -> None:
        told = FORMS["dr"](FULL)
        both = [{"url": f"{HOST}/1.0-draft", "protocolBinding": binding} for binding in BINDINGS]
        assert told["supportedInterfaces"] == told["additionalInterfaces"] == both
        assert (told["url"], told["preferredTransport"]) == (f"{HOST}/1.0-draft", "JSONRPC")

    def test_of_agent_json_are_the_url_that_looks_at_requests_and_that_of_0_2(self) -> None:
        told = FORMS["legacy"](FULL)
        assert told["url"] == HOST
        assert told["additionalInterfaces"] == [
            {"url": HOST, "transport": "JSONRPC"},
            {"url": f"{HOST}/0.2", "transport": "JSONRPC"},
        ]

    def test_that_need_a_tenant_are_for_1_0_alone(self) -> None:
        card = {**FULL, "supportedInterfaces": [interface("0.3", "GRPC", tenant="acme")]}
        assert FORMS["v03"](card)["additionalInterfaces"] == [
            {"url": f"{HOST}/0.3", "transport": binding} for binding in ("JSONRPC", "HTTP+JSON")
        ]
        assert FORMS["v10"](card)["supportedInterfaces"] == card["supportedInterfaces"]

    def test_prefer_what_the_main_url_serves_first(self) -> None:
        card = {**FULL, "supportedInterfaces": [interface("0.3", b) for b in BINDINGS[::-1]]}
        assert FORMS["v03"](card)["preferredTransport"] == "HTTP+JSON"


class TestTheRest:
    @pytest.mark.parametrize("form", FORMS)
    def test_of_a_full_card_is_strict(self, form: str) -> None:
        check(form, FORMS[form](FULL))

    def test_of_1_0_is_as_it_was(self) -> None:
        assert FORMS["v10"](FULL) == FULL

    def test_says_which_protocol_it_is(self) -> None:
        told = {form: make(FULL).get("protocolVersion") for form, make in ALL.items()}
        older = {"v02": "0.2.6", "legacy": "0.2.6", "v03": "0.3.0", "hybrid": "0.3.0", "dr": "1.0"}
        assert told == {**dict.fromkeys(ALL), **older}

    @pytest.mark.parametrize("form", ["v02", "v03", "dr", "hybrid"])
    def test_says_if_there_is_a_fuller_card(self, form: str) -> None:
        without = {**FULL, "capabilities": {"extendedAgentCard": False}}
        assert ALL[form](FULL)["supportsAuthenticatedExtendedCard"] is True
        assert "supportsAuthenticatedExtendedCard" not in ALL[form](without)

    @pytest.mark.parametrize("form", ["v02", "v03", "dr", "v10", "hybrid"])
    def test_keeps_extensions(self, form: str) -> None:
        assert ALL[form](FULL)["capabilities"]["extensions"] == FULL["capabilities"]["extensions"]
        assert "extensions" not in FORMS["v01"](FULL)["capabilities"]

    def test_has_words_for_modes_beside_media_types_in_the_oldest(self) -> None:
        told = FORMS["v00"](FULL)
        assert told["defaultInputModes"] == [
            "text",
            "text/plain",
            "data",
            "application/json",
            "image/png",
        ]
        assert told["skills"][0]["outputModes"] == ["data", "application/json"]

    @pytest.mark.parametrize("form", ["v00", "v02", "v03", "legacy", "hybrid"])
    def test_has_the_modes_of_every_skill(self, form: str) -> None:
        """Clients of 0.2 and 0.3 are in use that cannot do without."""
        for skill in ALL[form](FULL)["skills"]:
            assert skill["inputModes"]
            assert skill["outputModes"]
