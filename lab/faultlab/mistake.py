"""A mistake that a careless engineer could have made, and what has to notice it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Broken"]


@dataclass(frozen=True, slots=True)
class Broken:
    """A mistake: in `file`, `new` stands where `old` should."""

    name: str
    file: str
    old: str
    new: str
    #: The invariants it breaks; one of them has to be reported. A story has none: it has to fail.
    breaks: tuple[str, ...]
    #: A scenario, or a story: a test that pytest runs in the broken build.
    scenario: str
