"""The keys that seal the chain: `A2A_AUDIT_KEYS`, newest first; by default made from `SECRET_KEY` and its fallbacks."""

from __future__ import annotations

from functools import lru_cache

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.utils.encoding import force_bytes

from a2a_tasks.conf import conf

__all__ = ["keys"]

#: Separates these keys from all other keys derived from the same secret (RFC 5869 §3.2).
PURPOSE = b"a2a_tasks: seals of the audit log"
#: Minimum length of a key.
MIN_LENGTH = 32


def keys() -> tuple[bytes, ...]:
    """Return the keys, the sealing one first. Raises ValueError, without the key, for one that is too short."""
    return _keys(conf.AUDIT_KEYS, settings.SECRET_KEY, tuple(settings.SECRET_KEY_FALLBACKS))


@lru_cache(maxsize=4)
def _keys(own: str, django: str | bytes, fallbacks: tuple[str | bytes, ...]) -> tuple[bytes, ...]:
    """Return the configured keys, then those derived from Django's, which still verify older seals."""
    named = [key.strip() for key in own.split(",") if key.strip()]
    if any(len(key) < MIN_LENGTH for key in named):
        raise ValueError(f"A2A_AUDIT_KEYS must have {MIN_LENGTH} characters each, at least")
    return tuple(_make(key) for key in (*named, django, *fallbacks))


def _make(key: str | bytes) -> bytes:
    return HKDF(SHA256(), 32, None, PURPOSE).derive(force_bytes(key))
