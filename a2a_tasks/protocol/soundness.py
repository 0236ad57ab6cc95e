"""What an agent says is held to the rules a client is held to (A2A 1.0 §4.1): parts there, one content each, real JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from a2a_tasks.protocol.values import UNSET, Part

__all__ = ["check_json", "check_parts"]

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
    """Raise ValueError for numbers that JSON's readers would change: NaN, infinities, more than 64 bits."""
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
