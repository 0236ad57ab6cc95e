"""The parser of `A2A_SSO_GROUPS`; the settings use it, so it imports nothing of Django."""

from __future__ import annotations

__all__ = ["parse_mapping"]


def parse_mapping(text: str) -> dict[str, list[str]]:
    """Parse `theirs=ours,theirs=other`: groups of the issuer, each with groups of this host. Raises ValueError."""
    found: dict[str, list[str]] = {}
    for pair in filter(None, map(str.strip, text.split(","))):
        theirs, equals, ours = (part.strip() for part in pair.partition("="))
        if not (theirs and equals and ours):
            raise ValueError(f"A2A_SSO_GROUPS: {pair!r} is not THEIRS=OURS")
        found.setdefault(theirs, []).append(ours)
    return found
