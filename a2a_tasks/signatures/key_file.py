"""A file of card keys over time: a JWK Set, newest key first. What it becomes when keys come and go."""

from __future__ import annotations

from collections.abc import Iterable

from a2a_tasks.protocol.jsontext import write
from a2a_tasks.signatures.keys import CardKey, read_keys

__all__ = ["revoked", "rotated", "written"]


def rotated(text: str, new: CardKey, *, until: float, now: float) -> tuple[CardKey, ...]:
    """The new key in front; those before it sign and verify `until` then, or as long as was said. Expired ones go.

    Raises ValueError, which tells no key.
    """
    former = (key for key in read_keys(text) if key.current(now))
    return (new, *(_until(key, until) for key in former))


def revoked(text: str, kid: str) -> tuple[CardKey, ...]:
    """Without the key of that name: it verifies nothing any more. Raises ValueError if there is none, or no other."""
    keys = read_keys(text)
    left = tuple(key for key in keys if key.kid != kid)
    if len(left) == len(keys):
        raise ValueError(f"there is no key {kid!r}")
    if not left:
        raise ValueError("it is the only key: rotate before")
    return left


def written(keys: Iterable[CardKey]) -> str:
    """The JWK Set with the private halves."""
    rows = (write(key.as_dict(private=key.jwk.is_private)).decode() for key in keys)
    return '{"keys": [\n  ' + ",\n  ".join(rows) + "\n]}\n"


def _until(key: CardKey, until: float) -> CardKey:
    times = {**key.times, "exp": min(until, key.times.get("exp", until))}
    return CardKey(key.kid, key.algorithm, key.jwk, times)
