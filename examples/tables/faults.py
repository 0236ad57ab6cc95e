"""What can be wrong with a question.

    Fault
    ├── Misread    the text is not a question of the language: where, what was expected
    ├── Unknown    a name that does not exist here: which do
    ├── NoTable    no table was named, and none is in hand
    └── Refused    a limit, or a file that is no table: asking again does not help

The first three are asked back, so that the conversation goes on; the last one ends it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Fault", "Misread", "NoTable", "Refused", "Unknown", "Word"]


@dataclass(frozen=True, slots=True)
class Word:
    """A name as it was written, and where (offset and length in the question)."""

    name: str
    at: int
    length: int


class Fault(Exception):
    """A question that cannot be answered; its text is for the person who asked."""


def _pointed_at(question: str, at: int) -> str:
    """The question near an offset, on one line, with a caret below it."""
    start = max(0, at - 40)
    near = re.sub(r"\s", " ", question[start : at + 40])
    return f"    {near}\n    {' ' * (at - start)}^"


class Misread(Fault):
    """The text stops making sense at an offset."""

    def __init__(self, question: str, at: int, expected: str) -> None:
        found = repr(question[at : at + 20]) if at < len(question) else "the end"
        super().__init__(
            f"I lost you at character {at + 1}: expected {expected}, found {found}.\n\n"
            f"{_pointed_at(question, at)}"
        )
        self.at, self.expected = at, expected


class Unknown(Fault):
    """A name that is not among the options."""

    def __init__(self, kind: str, word: Word, options: Sequence[str]) -> None:
        self.kind, self.word, self.options = kind, word, tuple(options)
        close = difflib.get_close_matches(word.name.lower(), [o.lower() for o in options], n=1)
        self.guess = next((o for o in options if close and o.lower() == close[0]), "")
        meant = f" Did you mean {self.guess}?" if self.guess else ""
        super().__init__(
            f"There is no {kind} {word.name!r}.{meant} There is: {', '.join(options) or 'none'}."
        )


class NoTable(Fault):
    """The question names no table."""

    def __init__(self, options: Sequence[str]) -> None:
        self.options = tuple(options)
        super().__init__(f"Of which table? There is: {', '.join(options)}.")


class Refused(Fault):
    """More than this agent takes, or not what it can read."""
