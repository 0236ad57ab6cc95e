"""What is known of a caller once its credentials were looked at, and for how long."""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from a2a_tasks.access.credentials import Shown
from a2a_tasks.caller import Caller
from a2a_tasks.rates import Rate

__all__ = ["Memory", "Vouched", "digest", "fitting"]

T = TypeVar("T")
#: Of this process: who reads its memory finds no password by trying words.
_KEY = os.urandom(32)
#: Characters of the column that holds a task's owner.
LONGEST = 256


@dataclass(frozen=True, slots=True)
class Vouched:
    """A caller, and what the credentials say of their own use."""

    caller: Caller
    scheme: str
    #: When the credentials end, in seconds since 1970.
    until: float = math.inf
    #: Whom they are made out to; None = any agent of this host.
    audiences: frozenset[str] | None = None
    #: Thumbprint of the certificate they may only be used with (RFC 8705 §3); empty = any connection.
    bound: str = ""
    #: How often this caller may come, if that was said of its credentials.
    rate: Rate | None = None


def digest(credential: Shown) -> bytes:
    """Under what a credential is remembered; it cannot be read back from it."""
    text = f"{credential.scheme} {credential.address} {credential.text}".encode(
        "utf-8", "surrogatepass"
    )
    return hashlib.blake2b(text, key=_KEY, digest_size=32).digest()


def fitting(principal: str) -> str:
    """The principal as it can be stored: one that is too long is known by its digest."""
    if len(principal) <= LONGEST:
        return principal
    kind, _, rest = principal.partition(":")
    return f"{kind}:sha256:{hashlib.sha256(rest.encode()).hexdigest()}"


class Memory(Generic[T]):
    """Values by digest, each until its time: a bounded number, the oldest goes first."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = most, clock
        self._kept: dict[bytes, tuple[T, float]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: bytes) -> T | None:
        """The value, if its time is not over."""
        found = self._kept.get(key)
        if found is None:
            return None
        if self._clock() >= found[1]:
            self._kept.pop(key, None)
            return None
        return found[0]

    def keep(self, key: bytes, value: T, seconds: float) -> None:
        """Know it for so long."""
        if seconds <= 0:
            return
        self._kept.pop(key, None)
        while len(self._kept) >= self._most:
            self._kept.pop(next(iter(self._kept)))
        self._kept[key] = (value, self._clock() + seconds)

    def clear(self) -> None:
        """Know nothing."""
        self._kept.clear()
