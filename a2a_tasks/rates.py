"""Rates as they are written in settings, agents and keys: `20/s`, `600/m`, `1000/h burst 50`."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field

__all__ = ["Rate", "read_rate"]

_PATTERN = re.compile(r"([1-9][0-9]{0,5})\s*/\s*([smh])(?:\s+burst\s+([1-9][0-9]{0,5}))?")
_MICROSECONDS = {"s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}


@dataclass(frozen=True, slots=True)
class Rate:
    """A token bucket of `burst` tokens, to which one is added every `interval` microseconds."""

    interval: int
    burst: int
    #: Microseconds in which an empty bucket fills.
    span: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "span", self.interval * self.burst)


@functools.lru_cache(maxsize=1024)
def read_rate(text: str) -> Rate | None:
    """Return the rate that a text says; None (no limit) for an empty text. Raises ValueError.

    Without a burst, the bucket holds as many tokens as the number says.
    """
    if not text.strip():
        return None
    found = _PATTERN.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no rate such as 20/s, 600/m or 1000/h burst 50")
    count, unit, burst = found.groups()
    return Rate(round(_MICROSECONDS[unit] / int(count)), int(burst or count))
