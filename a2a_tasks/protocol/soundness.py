"""Checks of agents' output by the rules for clients (A2A 1.0 §4.1): at least one part, one content each, valid JSON.

Python's JSON is laxer than that of the host: `json.loads` makes half a surrogate pair, NaN and integers of any size of
what a model or a tool has written. Such values are mended (`mend`), and never fail a task. Clients' values are refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import is_
from typing import Any

from a2a_tasks.protocol.values import UNSET, Part

__all__ = ["check_json", "check_storable", "check_parts", "mend", "mend_text"]

_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1
#: Most bits of an integer that is kept as text: Python writes no more than 4300 digits.
_MAX_BITS = 4096


def mend_text(text: str) -> str:
    """Return a text with its surrogate pairs joined, and U+FFFD for each lone surrogate."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def mend(value: Any) -> Any:
    """Return a value as other readers of JSON take it. A sound one is returned as it is.

    Texts and names as by `mend_text`; NaN and infinities become None, as in JavaScript; integers beyond 64 bits become
    their digits as text, so that no digit is lost. Types that JSON does not have stay: `check_storable` names them.
    """
    if isinstance(value, str):
        return mend_text(value)
    try:
        return _mend(value)
    except RecursionError:
        return value  # the check that follows says so


def _mend(value: Any) -> Any:
    match value:
        case str():
            return mend_text(value)
        case float():
            return value if math.isfinite(value) else None
        case int():
            return value if _INT_MIN <= value <= _INT_MAX else _spell(value)
        case Mapping():
            mended: Any = {_mend_name(name): _mend(member) for name, member in value.items()}
            same = all(map(is_, value, mended)) and all(map(is_, value.values(), mended.values()))
            return value if same else mended
        case list() | tuple():
            items = list(map(_mend, value))
            same = all(map(is_, value, items))
            return value if same else items
    return value


def _mend_name(name: Any) -> Any:
    return mend_text(name) if isinstance(name, str) else name


def _spell(number: int) -> str | None:
    return str(number) if number.bit_length() <= _MAX_BITS else None


def check_parts(parts: Sequence[Part]) -> None:
    """Raise ValueError unless there is a part, and each has exactly one of text, raw, url and data."""
    if not parts:
        raise ValueError("a message or an artifact needs at least one part")
    for part in parts:
        absent = [part.text is UNSET, part.raw is UNSET, part.url is UNSET, part.data is UNSET]
        if absent.count(False) != 1:
            raise ValueError("a part must have exactly one of text, raw, url and data")
        if part.data is not UNSET:
            check_json(part.data)
        if part.metadata is not None:
            check_json(part.metadata)


def check_json(value: Any) -> None:
    """Raise ValueError for numbers that readers of JSON would change: NaN, infinities, more than 64 bits."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not JSON")
    if isinstance(value, int) and not _INT_MIN <= value <= _INT_MAX:
        raise ValueError("an integer does not fit in 64 bits")
    if isinstance(value, Mapping):
        for member in value.values():
            check_json(member)
    elif isinstance(value, list | tuple):
        for item in value:
            check_json(item)


def check_storable(name: str, value: Any) -> None:
    """Raise TypeError, with the member's name, for values that JSON changes: sets, bytes, NaN, dates.

    Tuples come back as lists. `name` is the name of the value in code: `turn.memory`.
    """
    try:
        _check_storable(name, value)
    except RecursionError:
        raise TypeError(f"{name} cannot be stored as JSON: it is nested too deeply") from None


def _check_storable(name: str, value: Any) -> None:
    if isinstance(value, dict):
        for key, member in value.items():
            inner = f"{name}[{key!r}]"
            if type(key) is not str:
                raise TypeError(f"{inner} cannot be stored as JSON: its key is no str")
            _check_storable(inner, member)
    elif isinstance(value, list | tuple):
        for number, member in enumerate(value):
            _check_storable(f"{name}[{number}]", member)
    elif value is not None and type(value) not in {bool, int, float, str}:
        raise TypeError(f"{name} cannot be stored as JSON: it is a {type(value).__name__}")
    else:
        try:
            check_json(value)
            if isinstance(value, str):
                value.encode()
        except ValueError as fault:
            raise TypeError(f"{name} cannot be stored as JSON: {fault}") from None
