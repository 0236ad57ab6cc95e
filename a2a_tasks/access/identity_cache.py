"""Cached identities: values under a digest of the credential, each with its expiry."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from a2a_tasks.access.credentials import ShownCredential

__all__ = ["TtlCache", "digest", "shorten_principal"]

T = TypeVar("T")
#: Random key of this process: without it, no password can be guessed from its digest.
_KEY = os.urandom(32)
#: Length of the column with a task's owner, in characters.
MAX_LENGTH = 256


def digest(credential: ShownCredential) -> bytes:
    """Return the cache key of a credential; the credential cannot be derived from the key."""
    text = f"{credential.scheme} {credential.address} {credential.text}".encode(
        "utf-8", "surrogatepass"
    )
    return hashlib.blake2b(text, key=_KEY, digest_size=32).digest()


def shorten_principal(principal: str) -> str:
    """Return the principal in its stored form: one that is too long is replaced by its digest."""
    if len(principal) <= MAX_LENGTH:
        return principal
    kind, _, rest = principal.partition(":")
    return f"{kind}:sha256:{hashlib.sha256(rest.encode()).hexdigest()}"


class TtlCache(Generic[T]):
    """Values by digest, each until it expires: a bounded number, of which the oldest is evicted first."""

    def __init__(self, limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = limit, clock
        self._kept: dict[bytes, tuple[T, float]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: bytes) -> T | None:
        """Return the value, if it has not expired."""
        found = self._kept.get(key)
        if found is None:
            return None
        if self._clock() >= found[1]:
            self._kept.pop(key, None)
            return None
        return found[0]

    def keep(self, key: bytes, value: T, seconds: float) -> None:
        """Store a value for so many seconds."""
        if seconds <= 0:
            return
        self._kept.pop(key, None)
        while len(self._kept) >= self._most:
            self._kept.pop(next(iter(self._kept)))
        self._kept[key] = (value, self._clock() + seconds)

    def clear(self) -> None:
        """Delete all values."""
        self._kept.clear()
