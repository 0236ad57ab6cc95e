"""The keys that seal the chain: `A2A_AUDIT_KEYS`, newest first; without any, made from `SECRET_KEY` and its fallbacks."""

from __future__ import annotations

from functools import lru_cache

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.utils.encoding import force_bytes

from a2a_tasks.conf import conf

__all__ = ["keys"]

#: Sets these keys apart from everything else that is made from the same secret (RFC 5869 §3.2).
PURPOSE = b"a2a_tasks: seals of the audit log"
#: Characters of a key at the least.
SHORTEST = 32


def keys() -> tuple[bytes, ...]:
    """The keys of now, the one that seals first. Raises ValueError, which tells no key, for one that is too short."""
    return _keys(conf.AUDIT_KEYS, settings.SECRET_KEY, tuple(settings.SECRET_KEY_FALLBACKS))


@lru_cache(maxsize=4)
def _keys(own: str, django: str | bytes, fallbacks: tuple[str | bytes, ...]) -> tuple[bytes, ...]:
    """Own keys first; those made from Django's still verify what was sealed before there were any."""
    named = [key.strip() for key in own.split(",") if key.strip()]
    if any(len(key) < SHORTEST for key in named):
        raise ValueError(f"A2A_AUDIT_KEYS must have {SHORTEST} characters each, at least")
    return tuple(_made(key) for key in (*named, django, *fallbacks))


def _made(key: str | bytes) -> bytes:
    return HKDF(SHA256(), 32, None, PURPOSE).derive(force_bytes(key))
