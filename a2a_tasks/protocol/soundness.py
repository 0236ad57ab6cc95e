"""Checks of agents' output by the rules for clients (A2A 1.0 §4.1): at least one part, one content each, valid JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from a2a_tasks.protocol.values import UNSET, Part

__all__ = ["check_json", "check_kept", "check_parts"]

_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1


def check_parts(parts: Sequence[Part]) -> None:
    """Raise ValueError unless there is a part, and each has exactly one of text, raw, url and data."""
    if not parts:
        raise ValueError("a message or an artifact needs at least one part")
    for part in parts:
        contents = [part.text, part.raw, part.url, part.data]
        if sum(content is not UNSET for content in contents) != 1:
            raise ValueError("a part must have exactly one of text, raw, url and data")
        if part.data is not UNSET:
            check_json(part.data)
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


def check_kept(name: str, value: Any) -> None:
    """Raise TypeError, with the member's name, for values that JSON changes: sets, bytes, NaN, dates.

    Tuples come back as lists. `name` is the name of the value in code: `turn.memory`.
    """
    try:
        _check_kept(name, value)
    except RecursionError:
        raise TypeError(f"{name} cannot be stored as JSON: it is nested too deeply") from None


def _check_kept(name: str, value: Any) -> None:
    if isinstance(value, dict):
        for key, member in value.items():
            inner = f"{name}[{key!r}]"
            if type(key) is not str:
                raise TypeError(f"{inner} cannot be stored as JSON: its key is no str")
            _check_kept(inner, member)
    elif isinstance(value, list | tuple):
        for number, member in enumerate(value):
            _check_kept(f"{name}[{number}]", member)
    elif value is not None and type(value) not in {bool, int, float, str}:
        raise TypeError(f"{name} cannot be stored as JSON: it is a {type(value).__name__}")
    else:
        try:
            check_json(value)
            if isinstance(value, str):
                value.encode()
        except ValueError as fault:
            raise TypeError(f"{name} cannot be stored as JSON: {fault}") from None
