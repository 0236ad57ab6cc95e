"""What `A2A_SSO_GROUPS` says; the settings read it, so it knows nothing of Django."""

from __future__ import annotations

__all__ = ["mapped"]


def mapped(text: str) -> dict[str, list[str]]:
    """`theirs=ours,theirs=other`: a group of the issuer's, and the names of ours it stands for. Raises ValueError."""
    found: dict[str, list[str]] = {}
    for pair in filter(None, map(str.strip, text.split(","))):
        theirs, equals, ours = (part.strip() for part in pair.partition("="))
        if not (theirs and equals and ours):
            raise ValueError(f"A2A_SSO_GROUPS: {pair!r} is not THEIRS=OURS")
        found.setdefault(theirs, []).append(ours)
    return found
