"""The secrets of a turn: what was handed over for it by a page that works once, outside the conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["Secrets", "asked_for"]

#: Most secrets asked for at once, and characters of the name of one.
MOST, LONGEST = 10, 100


class Secrets:
    """Secrets by name. This one calls nobody: `Turn(..., secrets=Secrets({"API token": "s3cret"}))` is for tests of agents."""

    def __init__(self, handed: Mapping[str, str] | None = None) -> None:
        self._handed = dict(handed or {})

    async def handed(self) -> Mapping[str, str]:
        """All that was handed over for this turn."""
        return self._handed

    def __repr__(self) -> str:
        return "Secrets(...)"


def asked_for(names: str | Sequence[str]) -> tuple[str, ...]:
    """The names of what is to be handed over. Raises ValueError for names nobody can be asked by."""
    asked = (names,) if isinstance(names, str) else tuple(names)
    good = all(name.strip() and len(name) <= LONGEST for name in asked)
    if not good or len(asked) > MOST or len(set(asked)) < len(asked):
        raise ValueError(f"hand_over: up to {MOST} different names of up to {LONGEST} characters")
    return asked
