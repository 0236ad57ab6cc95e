"""What other apps can say of tasks that somebody may look for: `webhooks`, those with webhooks in trouble.

This app knows nothing of it; each registers itself when it is loaded (`AppConfig.ready`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

__all__ = ["MOST", "Mark", "find", "marks", "register"]

#: Tasks that one mark is of, the newest ones.
MOST = 5_000


@dataclass(frozen=True)
class Mark:
    """A mark: what it is called in addresses, in words, and the keys of at most so many of the newest tasks that have it."""

    name: str
    words: str
    tasks: Callable[[int], Iterable[int]]


_marks: dict[str, Mark] = {}


def register(mark: Mark) -> None:
    """Let tasks be looked for by it."""
    _marks[mark.name] = mark


def marks() -> list[Mark]:
    """All of them."""
    return list(_marks.values())


def find(name: str) -> Mark | None:
    """The one of that name."""
    return _marks.get(name)
