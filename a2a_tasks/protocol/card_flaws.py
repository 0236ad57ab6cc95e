"""Missing and invalid members of a card, by its dialect's schema: mistakes that break readers of that generation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from a2a_tasks.protocol.dialects import DIALECTS, Dialect
from a2a_tasks.protocol.dialects.cards import MODES

__all__ = ["REQUIRED", "flaws"]

#: By form (`operations/cards.py`), the members that its readers require.
REQUIRED: Mapping[str, frozenset[str]] = {
    **{code: dialect.card_members for code, dialect in DIALECTS.items()},
    "hybrid": DIALECTS["v03"].card_members | DIALECTS["v10"].card_members,
    "legacy": DIALECTS["v02"].card_members | {"authentication"},
}
TEXTS = ("name", "description", "url", "version", "protocolVersion", "preferredTransport")
LISTS = ("skills", *MODES, "supportedInterfaces")


def flaws(card: Mapping[str, Any], form: str) -> list[str]:
    """Return the mistakes in a card, one sentence each."""
    return list(_flaws(card, form))


def _flaws(card: Mapping[str, Any], form: str) -> Iterator[str]:
    for name in sorted(REQUIRED[form] - card.keys()):
        yield f"{name} is missing"
    for name in TEXTS:
        if name in card and not (isinstance(card[name], str) and card[name]):
            yield f"{name} must be a text that is not empty"
    for name in LISTS:
        if name in card and not (isinstance(card[name], list) and card[name]):
            yield f"{name} must have something in it"
    dialect = DIALECTS.get(form)
    yield from _of_skills(card, dialect.skill_members if dialect else Dialect.skill_members)


def _of_skills(card: Mapping[str, Any], needed: tuple[str, ...]) -> Iterator[str]:
    skills = card.get("skills")
    for number, skill in enumerate(skills if isinstance(skills, list) else []):
        lacking = [name for name in needed if not skill.get(name)]
        if lacking:
            yield f"skills[{number}] ({skill.get('id') or 'without an id'}) lacks {', '.join(lacking)}"
