"""Declarations of agents: what is announced, what is refused, and that nothing is lost on the way."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest

from a2a_tasks.agents import Agent, Skill, Turn
from a2a_tasks.agents.cards import card_of
from a2a_tasks.agents.declaration import (
    AnnouncedAgent,
    UnfitManifest,
    declare,
    digest,
    read_declaration,
    read_manifest,
    sign,
)
from a2a_tasks.agents.forwarded_headers import pick
from a2a_tasks.agents.skill import Extension, Provider

SKILL = Skill("say", "Say", "Says it", ["say"], examples=["say it"], scopes=["speech"])


def made(**attributes: Any) -> Agent:
    """An agent that is in order but for these attributes."""
    good = {"name": "Good", "description": "Good.", "skills": [SKILL], "run": answer}
    cls = cast(
        "type[Agent]", type("Good", (Agent,), {**good, "slug": "good", **attributes}, abstract=True)
    )
    return cls()


def answer(agent: Agent, turn: Turn) -> str:
    """Answer anything."""
    return turn.text


def test_an_announced_agent_has_the_card_of_the_real_one() -> None:
    agent = made(
        provider=Provider("Example", "https://example.com"),
        extensions=[Extension("urn:example", params={"a": [1, {"b": None}]})],
        default_input_modes=["text/*"],
        push_notifications=True,
        streaming=False,
        scopes=["good"],
        version="2.0.1",
        forwarded_headers=["X-User-Id"],
    )
    there = AnnouncedAgent(read_declaration(msgspec.json.encode(declare(agent))), "elsewhere")
    assert card_of(there, "https://host") == card_of(agent, "https://host")
    assert there.queue == "good@2.0.1"
    assert there.accepts("text/csv")
    assert not there.accepts("image/png")
    assert pick(there, {"x-user-id": "7", "x-team": "red"}) == {"x-user-id": "7"}


def test_the_extended_card_stays_in_the_environment() -> None:
    there = AnnouncedAgent(declare(made(has_extended_card=True)), "elsewhere")
    assert not there.has_extended_card


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"name": ""}, "needs a name and a description"),
        ({"skills": []}, "has no skills"),
        ({"version": "two words"}, "the version 'two words' must have"),
        ({"version": ""}, "the version '' must have"),
        ({"version": "1" * 33}, "must have 1 to 32"),
        ({"slug": "s" * 60, "version": "1.0.0"}, "more than 63 characters"),
        ({"description": "x" * 1024 * 1024}, "more than 1048576 bytes"),
        ({"scopes": "good"}, "scopes"),
        ({"streaming": "yes"}, "streaming"),
        ({"when_version_is_gone": "retry"}, "when_version_is_gone is 'retry'"),
        ({"schemes": ["magic"]}, "schemes has 'magic'"),
        ({"scopes": ["two words"]}, "cannot be a scope"),
        ({"visibility": "all"}, "visibility is 'all'"),
        ({"grants": "some"}, "grants is 'some'"),
        ({"forwarded_headers": ["cookie"]}, "forwarded_headers: 'cookie' is a header"),
        ({"extensions": [Extension("urn:x", params={"a": object()})]}, "type object is unsup"),
    ],
)
def test_an_agent_that_could_not_be_hosted_is_not_announced(
    attributes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(UnfitManifest, match=reason):
        declare(made(**attributes))


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"{}", b"\xff", b'{"slug": "good"}', b"[" * 100_000],
    ids=["empty", "list", "nothing", "no UTF-8", "too little", "nested"],
)
def test_what_is_no_declaration_is_refused(text: bytes) -> None:
    with pytest.raises(UnfitManifest):
        read_declaration(text)


@pytest.mark.parametrize("depth", [33, 900, 100_000])
def test_deeply_nested_parameters_are_refused(depth: int) -> None:
    text = msgspec.json.encode(declare(made(extensions=[Extension("urn:x", params={"a": 1})])))
    nested = b'{"a":' + b"[" * depth + b"]" * depth + b"}"
    with pytest.raises(UnfitManifest, match=r"nested too deeply|recursion"):
        read_declaration(text.replace(b'{"a":1}', nested))
    manifest_text = manifest(agents=[1]).replace(b"[1]", b"[" + nested + b"]")
    if depth > 1000:
        with pytest.raises(UnfitManifest, match="recursion"):
            read_manifest(manifest_text, host="1.2.7")


def test_an_unknown_member_is_refused_and_a_changed_one_changes_the_digest() -> None:
    text = msgspec.json.encode(declare(made()))
    with pytest.raises(UnfitManifest, match="unknown field"):
        read_declaration(text[:-1] + b',"color":"red"}')
    other = msgspec.json.encode(declare(made(name="Better")))
    assert digest(text) != digest(other)


def test_a_signature_holds_for_one_environment_and_one_card() -> None:
    signed = sign("key", "adk", b"card")
    assert signed != sign("key", "crewai", b"card")
    assert signed != sign("key", "adk", b"cart")
    assert signed != sign("other", "adk", b"card")
    assert sign("", "adk", b"card") == ""


def manifest(**members: Any) -> bytes:
    """A manifest that is in order but for these members."""
    good = {"format": 1, "host": "1.2.0", "environment": "adk", "agents": []}
    return msgspec.json.encode({**good, **members})


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"host": "1.3.0"}, "it needs a2a-host 1.3 or newer, and this host is 1.2.7"),
        ({"host": "2.0"}, "needs a2a-host 2.0 or newer"),
        ({"format": 2}, "the format of the manifest is 2"),
        ({"environment": "a b"}, "'a b' is not the name of an environment"),
        ({"environment": ""}, "not the name"),
        ({"agents": {}}, "not a manifest"),
        ({"host": "9" * 5000}, "is not the version of a host"),
        ({"host": ""}, "is not the version of a host"),
        ({"host": "1" * 32}, "it needs a2a-host"),
        ({"signatures": ["ä" * 64]}, "hexadecimal"),
        ({"signatures": ["a" * 65]}, "hexadecimal"),
    ],
)
def test_a_manifest_that_this_host_cannot_read_is_refused_with_the_reason(
    members: dict[str, Any], reason: str
) -> None:
    with pytest.raises(UnfitManifest, match=reason):
        read_manifest(manifest(**members), host="1.2.7")


@pytest.mark.parametrize("host", ["1.2.0", "1.2.9", "1.1.5", "0.9"])
def test_a_manifest_of_the_same_or_an_older_minor_version_is_read(host: str) -> None:
    assert read_manifest(manifest(host=host), host="1.2.7").environment == "adk"
