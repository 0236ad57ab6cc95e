"""Missing and invalid members of a card, by its dialect's schema: mistakes that break readers of that generation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["REQUIRED", "flaws"]

ABOUT = frozenset({"name", "description", "version", "capabilities", "skills"})
MODES = frozenset({"defaultInputModes", "defaultOutputModes"})
OLDEST = frozenset({"name", "url", "version", "capabilities", "skills"})
V02 = ABOUT | MODES | {"url", "protocolVersion"}
V03 = V02 | {"preferredTransport"}
#: By form (`operations/cards.py`), the members that its readers require.
REQUIRED: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("s0", "v00", "v01"), OLDEST),
    "v02": V02,
    "v03": V03,
    "dr": ABOUT | MODES | {"protocolVersion"},
    "v10": ABOUT | MODES | {"supportedInterfaces"},
    "hybrid": V03 | {"supportedInterfaces"},
    "legacy": V02 | {"authentication"},
}
#: The members required of a skill: by the oldest dialects, and by all others.
SKILL_OF_OLDEST, SKILL = ("id", "name"), ("id", "name", "description", "tags")
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
    yield from _of_skills(card, SKILL_OF_OLDEST if REQUIRED[form] is OLDEST else SKILL)


def _of_skills(card: Mapping[str, Any], needed: tuple[str, ...]) -> Iterator[str]:
    skills = card.get("skills")
    for number, skill in enumerate(skills if isinstance(skills, list) else []):
        lacking = [name for name in needed if not skill.get(name)]
        if lacking:
            yield f"skills[{number}] ({skill.get('id') or 'without an id'}) lacks {', '.join(lacking)}"
