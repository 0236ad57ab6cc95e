"""Flaws of cards: what each dialect's schema needs, and no card of this host lacks."""

from __future__ import annotations

from typing import Any

from a2a_tasks.agents import registry
from a2a_tasks.operations.cards import FORMS, make_card
from a2a_tasks.protocol.card_flaws import REQUIRED, flaws
from a2a_tasks.signatures.ring import Seal
from tests.support.protocol.card_schemas import SCHEMAS
from tests.support.rows import rows

BASE = "https://agents.example.com"


def card(form: str, slug: str = "demo") -> dict[str, Any]:
    agent = registry.find_hosted(slug)
    assert agent is not None
    return dict(make_card(agent, BASE, form, Seal((), loosely=False)))


@rows("form", SCHEMAS)
def test_what_is_required_is_what_the_schema_requires(form: str) -> None:
    assert REQUIRED[form] == set(SCHEMAS[form]["required"])


def test_every_form_is_known() -> None:
    assert REQUIRED.keys() == FORMS.keys()


@rows("form", FORMS)
@rows("slug", registry.slugs())
def test_cards_of_this_host_have_none(form: str, slug: str) -> None:
    assert flaws(card(form, slug), form) == []


@rows("form", FORMS)
def test_whatever_is_taken_away_is_missed(form: str) -> None:
    whole = card(form)
    for name in REQUIRED[form]:
        less = {key: value for key, value in whole.items() if key != name}
        assert f"{name} is missing" in flaws(less, form)


def test_what_is_empty_or_of_another_kind_is_told() -> None:
    assert flaws({**card("v10"), "name": ""}, "v10") == ["name must be a text that is not empty"]
    assert flaws({**card("v10"), "skills": []}, "v10") == ["skills must have something in it"]
    bare = {**card("v10"), "skills": [{"id": "x", "name": "X"}]}
    assert flaws(bare, "v10") == ["skills[0] (x) lacks description, tags"]
    assert flaws({**card("v01"), "skills": bare["skills"]}, "v01") == []
