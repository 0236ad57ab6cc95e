"""The host's own card of an agent: what the agent declares and where it is, in the form of A2A 1.0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from a2a_tasks.agents import Agent, Extension, Provider, Skill
from a2a_tasks.agents.cards import card_of, url_of
from a2a_tasks.agents.host_extensions import (
    IDEMPOTENT_SENDS,
    RESUMABLE_STREAMS,
    TOOL_EVENTS,
    USAGE,
)
from a2a_tasks.caller import Caller
from a2a_tasks.protocol.dialects import cards
from a2a_tasks.protocol.mounts import DETECTING, MOUNTS
from tests.support.protocol.card_schemas import check

BASE = "https://h"


class Talkative(Agent, abstract=True):
    """Declares all there is to declare."""

    slug = "talkative"
    name = "Talkative"
    description = "Says everything."
    version = "2.1"
    provider = Provider("Org", "https://org")
    documentation_url = "https://docs"
    icon_url = "https://icon"
    default_input_modes = ("text/plain", "image/*")
    skills = [
        Skill("one", "One", "First", tags=["a"], examples=["go"], input_modes=["text/plain"]),
        Skill("two", "Two", "Second", tags=["b"], output_modes=["image/png"]),
    ]
    extensions = (
        Extension("urn:a", "An extension", required=True, params={"deep": [1, {"a": None}]}),
        Extension("urn:b"),
    )
    has_extended_card = True

    def extended_card(self, card: Mapping[str, Any], caller: Caller) -> Mapping[str, Any]:
        """One more skill."""
        more = {"id": "x", "name": "X", "description": "For you", "tags": ["x"]}
        return {**card, "skills": [*card["skills"], more]}


class Terse(Agent, abstract=True):
    """Declares what it must."""

    slug = "terse"
    name = "Terse"
    description = "Says little."
    skills = [Skill("one", "One", "First", tags=["a"])]


class TestACard:
    def test_is_one_of_1_0_with_no_member_too_many(self) -> None:
        for agent in (Talkative(), Terse()):
            card = card_of(agent, BASE)
            check("v10", card)
            assert cards.final(card) == card

    def test_says_what_the_agent_declares_and_nothing_that_is_empty(self) -> None:
        card = card_of(Talkative(), BASE)
        assert card["provider"] == {"organization": "Org", "url": "https://org"}
        assert (card["documentationUrl"], card["iconUrl"]) == ("https://docs", "https://icon")
        assert card["capabilities"]["extendedAgentCard"] is True
        assert card["capabilities"]["extensions"] == [
            {
                "uri": "urn:a",
                "description": "An extension",
                "params": {"deep": [1, {"a": None}]},
                "required": True,
            },
            {"uri": "urn:b"},
            *(
                {"uri": extension.uri, "description": extension.description}
                for extension in (RESUMABLE_STREAMS, IDEMPOTENT_SENDS)
            ),
        ]
        assert [sorted(skill) for skill in card["skills"]] == [
            ["description", "examples", "id", "inputModes", "name", "tags"],
            ["description", "id", "name", "outputModes", "tags"],
        ]
        assert not {"provider", "documentationUrl", "iconUrl"} & card_of(Terse(), BASE).keys()

    @pytest.mark.parametrize(
        ("attribute", "extension"), [("reports_usage", USAGE), ("reports_tools", TOOL_EVENTS)]
    )
    def test_declares_what_the_agent_reports(
        self, monkeypatch: pytest.MonkeyPatch, attribute: str, extension: Extension
    ) -> None:
        assert extension.uri not in str(card_of(Talkative(), BASE))
        monkeypatch.setattr(Talkative, attribute, True)
        assert extension.uri in str(card_of(Talkative(), BASE))

    def test_lists_the_ways_in_the_newest_first(self) -> None:
        ways = [
            (way["protocolVersion"], way["protocolBinding"], way["url"])
            for way in card_of(Terse(), BASE)["supportedInterfaces"]
        ]
        at = "https://h/agents/terse/a2a"
        assert ways == [
            ("1.0", "JSONRPC", f"{at}/1.0"),
            ("1.0", "HTTP+JSON", f"{at}/1.0"),
            ("0.3", "JSONRPC", f"{at}/0.3"),
            ("0.3", "HTTP+JSON", f"{at}/0.3"),
        ]

    def test_that_is_extended_is_one_in_every_dialect_too(self) -> None:
        agent = Talkative()
        fuller = agent.extended_card(card_of(agent, BASE), Caller(principal="user:1"))
        for form, told in {
            "v02": cards.v02(fuller, BASE),
            "v03": cards.v03(fuller, BASE),
            "dr": cards.draft(fuller, BASE),
            "v10": cards.final(fuller),
        }.items():
            check(form, told)
            assert [skill["id"] for skill in told["skills"]] == ["one", "two", "x"]


class TestAUrl:
    def test_has_no_slash_at_its_end(self) -> None:
        assert url_of(Terse(), BASE, DETECTING) == "https://h/agents/terse/a2a"
        assert url_of(Terse(), BASE, MOUNTS["s0"]) == "https://h/agents/terse/a2a/seed-0"
