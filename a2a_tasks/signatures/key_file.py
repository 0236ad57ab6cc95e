"""The file of card keys, a JWK Set with the newest key first, and its changes when keys are added and removed."""

from __future__ import annotations

from collections.abc import Iterable

from a2a_tasks.protocol.jsontext import write
from a2a_tasks.signatures.keys import CardKey, read_keys

__all__ = ["revoke", "rotate", "write_jwks"]


def rotate(text: str, new: CardKey, *, until: float, now: float) -> tuple[CardKey, ...]:
    """Put a new key in front; the former keys are valid `until` then at most, and expired ones are removed.

    Raises ValueError, whose text contains no key.
    """
    former = (key for key in read_keys(text) if key.current(now))
    return (new, *(_until(key, until) for key in former))


def revoke(text: str, kid: str) -> tuple[CardKey, ...]:
    """Remove the key with that `kid`: it verifies nothing. Raises ValueError if it is missing or the only one."""
    keys = read_keys(text)
    left = tuple(key for key in keys if key.kid != kid)
    if len(left) == len(keys):
        raise ValueError(f"there is no key {kid!r}")
    if not left:
        raise ValueError("it is the only key: rotate before")
    return left


def write_jwks(keys: Iterable[CardKey]) -> str:
    """Return the JWK Set of the keys, with their private halves."""
    rows = (write(key.as_dict(private=key.jwk.is_private)).decode() for key in keys)
    return '{"keys": [\n  ' + ",\n  ".join(rows) + "\n]}\n"


def _until(key: CardKey, until: float) -> CardKey:
    times = {**key.times, "exp": min(until, key.times.get("exp", until))}
    return CardKey(key.kid, key.algorithm, key.jwk, times)
