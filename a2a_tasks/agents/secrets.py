"""The secrets of a turn, which people enter on a page that works once, outside the conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["Secrets", "check_names"]

#: Most secrets in one request, and most characters of a secret's name.
MAX_COUNT, MAX_LENGTH = 10, 100


class Secrets:
    """Secrets by name. This base class makes no calls: it is for tests of agents.

    Use: `Turn(..., secrets=Secrets({"API token": "s3cret"}))`.
    """

    def __init__(self, handed: Mapping[str, str] | None = None) -> None:
        self._handed = dict(handed or {})

    async def read_handed(self) -> Mapping[str, str]:
        """Return all secrets that were handed over for this turn."""
        return self._handed

    def __repr__(self) -> str:
        return "Secrets(...)"


def check_names(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of the requested secrets.

    Raises ValueError for blank, too long or repeated names, and for too many.
    """
    checked = (names,) if isinstance(names, str) else tuple(names)
    good = all(name.strip() and len(name) <= MAX_LENGTH for name in checked)
    if not good or len(checked) > MAX_COUNT or len(set(checked)) < len(checked):
        raise ValueError(
            f"hand_over: up to {MAX_COUNT} different names of up to {MAX_LENGTH} characters"
        )
    return checked
