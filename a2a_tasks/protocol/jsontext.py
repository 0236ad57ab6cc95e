"""The JSON reader for all requests: bytes in, a plain tree out, without values that a store or a peer cannot handle.

Not JSON (RFC 8259), so ParseError: bytes that are not UTF-8, a byte order mark, NaN and Infinity, trailing text.
JSON, but not interoperable (RFC 7493), so InvalidParams: duplicate names in an object, lone surrogates, integers beyond
64 bits, floats beyond doubles, too deep nesting, too many values, too many members of one object, too many escapes. NUL
inside a string is data and is kept.
"""

from __future__ import annotations

import json
import math
import re
from array import array
from collections.abc import Callable
from itertools import accumulate
from typing import Any, NoReturn

import msgspec

from a2a_tasks.protocol.errors import InvalidParams, ParseError

__all__ = [
    "MAX_ESCAPES",
    "MAX_MEMBERS",
    "MAX_VALUES",
    "NO_ID",
    "Flawed",
    "on_one_line",
    "read",
    "write",
]

#: Replaces the id of a refused document if the id itself is wrong or has an impossible type.
NO_ID: object = object()

#: Maximum number of values in a document, including arrays and objects. Small values cost far more than their bytes,
#: and parsing blocks the process: 4 MB of empty objects took a second and a half.
MAX_VALUES = 100_000
#: Maximum number of members of one object. The parser gives no other thread its turn until an object of strings ends:
#: 99,000 members held the process for 50 milliseconds of CPU.
MAX_MEMBERS = 50_000
#: Maximum number of backslashes. The parser cuts a string at each escape and gives no other thread its turn until the
#: string ends: 1.3 million of them held the process for 50 milliseconds of CPU. Chinese text of 4 MB has 700,000.
MAX_ESCAPES = 1_000_000
#: A string without escapes, or one without an end.
_STRINGS = re.compile(rb'"[^"]*+"?')
#: Keeps only the brackets: one level deeper, or (as a signed byte) one level up.
_LEVELS, _OTHERS = bytes.maketrans(b"[{]}", b"\1\1\xff\xff"), bytes({*range(256)} - {*b"[]{}"})
#: The characters of JSON text at which `str.splitlines` of Python, and so httpx, ends a line: NEL and the separators of
#: lines and of paragraphs. The other ones, such as LF and the form feed, are escaped in every JSON text.
_SEPARATORS = {char.encode(): b"\\u%04x" % ord(char) for char in "\x85\u2028\u2029"}
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_INT64_DIGITS = 18
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1


class Flawed(InvalidParams):
    """Readable JSON that is refused; `document` has only the id, for the answer."""

    def __init__(self, description: str, document: Any = None) -> None:
        super().__init__(violations=[("", description)])
        self.document = document


class _Flaw(Exception):
    """The exception of the parser's hooks."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Flaw("an object has the same name twice")
    return found


def _fits(digits: str) -> bool:
    return len(digits) <= _INT64_DIGITS or (
        len(digits) <= _INT64_DIGITS + 3 and _INT_MIN <= int(digits) <= _INT_MAX
    )


def _integer(digits: str) -> int:
    if len(digits) > _INT64_DIGITS and not _fits(digits):
        raise _Flaw("an integer does not fit in 64 bits")
    return int(digits)


def _float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise _Flaw("a number is too large")
    return number


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_strict = json.JSONDecoder(
    object_pairs_hook=_unique, parse_int=_integer, parse_float=_float, parse_constant=_constant
)
_lenient = json.JSONDecoder(
    parse_constant=_constant, parse_int=lambda digits: int(digits) if _fits(digits) else math.nan
)
#: Returns a value as compact JSON in UTF-8.
write: Callable[[Any], bytes] = msgspec.json.Encoder().encode


def _too_deep(body: bytes, limit: int) -> bool:
    """Return whether the body is nested deeper.

    Superfluous closing brackets may hide levels, but the parser stops there.
    """
    if body.count(b"[") + body.count(b"{") <= limit:  # nearly every request ends here
        return False
    levels = array("b", _without_strings(body).translate(_LEVELS, _OTHERS))
    return max(accumulate(levels), default=0) > limit


def _too_many(body: bytes, limit: int) -> bool:
    """Return whether there are more values: each follows a comma or is the first after a bracket."""
    if _count_separators(body) <= limit:  # nearly every request ends here
        return False
    # A value has at most four quotes, those of its name and its own; with more quotes the exact count is not needed.
    if body.count(b'"') - body.count(b'\\"') > 4 * limit:
        return True
    return _count_separators(_without_strings(body)) > limit


def _too_wide(body: bytes) -> bool:
    """Return whether an object has more than MAX_MEMBERS members between two ends of objects."""
    if body.count(b":") <= MAX_MEMBERS:  # nearly every request ends here
        return False
    pieces = _without_strings(body).split(b"}")
    return any(piece.count(b":") > MAX_MEMBERS for piece in pieces)


def _without_strings(body: bytes) -> bytes:
    """Return a document without its strings; first of all without the escapes in them.

    A backslash outside of a string ends the parser there. A pattern that read escapes would take a tenth of a second for
    4 MB of them.
    """
    return _STRINGS.sub(b"", body.replace(b"\\\\", b"").replace(b'\\"', b""))


def _count_separators(body: bytes) -> int:
    return body.count(b",") + body.count(b"[") + body.count(b"{")


def _readable(text: str) -> Any:
    try:
        return _only_id(_lenient.decode(text))
    except ValueError:
        raise ParseError from None


def _only_id(document: Any) -> Any:
    """Return the id of a refused document, as nothing else of it is needed. An id that cannot be sent becomes NO_ID."""
    found = document.get("id") if isinstance(document, dict) else None
    match found:
        case str():
            sendable = not any("\ud800" <= character <= "\udfff" for character in found)
        case float():
            sendable = math.isfinite(found)
        case _:
            sendable = isinstance(found, int) and not isinstance(found, bool)
    if found is None:
        return {}
    return {"id": found if sendable else NO_ID}


def _has_lone_surrogate(text: str, document: Any) -> bool:
    if not _SURROGATE.search(text):
        return False
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def read(body: bytes, *, max_depth: int = 64, max_values: int = MAX_VALUES) -> Any:
    """Return the document in `body`. Raises ParseError (not JSON) or Flawed (JSON, but refused)."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise ParseError from None
    if _too_many(body, max_values):
        raise Flawed(f"more than {max_values} values")
    if body.count(b"\\") > MAX_ESCAPES:
        raise Flawed(f"more than {MAX_ESCAPES} escapes")
    if _too_wide(body):
        raise Flawed(f"an object with more than {MAX_MEMBERS} members")
    if _too_deep(body, max_depth):
        raise Flawed(f"nested deeper than {max_depth} levels")
    try:
        document = _strict.decode(text)
    except _Flaw as flaw:
        raise Flawed(str(flaw), _readable(text)) from None
    except RecursionError:  # a limit beyond Python's recursion limit
        raise Flawed("nested too deep") from None
    except ValueError:
        raise ParseError from None
    if _has_lone_surrogate(text, document):
        raise Flawed("a string holds half of a surrogate pair", _only_id(document))
    return document


def on_one_line(text: bytes) -> bytes:
    """Return the same JSON with U+0085, U+2028 and U+2029 escaped, for readers that split at them (httpx `aiter_lines`)."""
    if not text.isascii():
        for raw, escaped in _SEPARATORS.items():
            text = text.replace(raw, escaped)
    return text
