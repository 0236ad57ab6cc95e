"""From text to tokens. Pure, linear in the text, and it always ends with an END token."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from examples.tables.faults import Misread

__all__ = ["Kind", "Token", "tokens"]


class Kind(enum.Enum):
    """Kinds of tokens; the value is what a message calls them."""

    WORD = "a word"
    NAME = "a name"  #: in backticks: never a keyword
    STRING = "a text"
    NUMBER = "a number"
    SIGN = "a sign"
    END = "the end"


@dataclass(frozen=True, slots=True)
class Token:
    """One token: its meaning, and where it was written."""

    kind: Kind
    value: str
    at: int
    length: int


#: A quote inside quotes is written twice, as in SQL and CSV.
PATTERN = re.compile(
    r"""(?P<WORD>[^\W\d]\w*)
      | (?P<NUMBER>-?\d+(?:\.\d+)?(?!\w))
      | "(?P<DOUBLE>(?:[^"]|"")*)"
      | '(?P<SINGLE>(?:[^']|'')*)'
      | `(?P<NAME>(?:[^`]|``)+)`
      | (?P<SIGN><=|>=|!=|<>|[=<>(),])""",
    re.VERBOSE,
)
SPACE = re.compile(r"\s*")
QUOTES = {"DOUBLE": '"', "SINGLE": "'", "NAME": "`"}


def _token(match: re.Match[str]) -> Token:
    group = match.lastgroup or ""
    value = match[group]
    if group in QUOTES:
        value = value.replace(QUOTES[group] * 2, QUOTES[group])
    kind = Kind.STRING if group in {"DOUBLE", "SINGLE"} else Kind[group]
    return Token(kind, value, match.start(), match.end() - match.start())


def tokens(question: str) -> list[Token]:
    """Cut the question into tokens. Raises Misread at what is none."""
    found = []
    at = _skip(question, 0)
    while at < len(question):
        match = PATTERN.match(question, at)
        if match is None:
            quoted = question[at] in QUOTES.values()
            raise Misread(question, at, "a closing quote" if quoted else "a word, number or quote")
        found.append(_token(match))
        at = _skip(question, match.end())
    return [*found, Token(Kind.END, "", len(question), 0)]


def _skip(question: str, at: int) -> int:
    match = SPACE.match(question, at)
    return match.end() if match else at
