"""Secrets at rest: sealed with the newest key, opened with any that is known (docs/decisions/0062).

A row holds only what `seal` gives; what opens it is in the settings of the process, never in the database.
"""

from __future__ import annotations

import base64
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.utils.encoding import force_bytes

from a2a_tasks.conf import conf

__all__ = ["Unreadable", "check_keys", "opened", "resealed", "seal"]

#: Sets these keys apart from everything else that is made from SECRET_KEY (RFC 5869 §3.2).
PURPOSE = b"a2a_push: secrets at rest"  # what was sealed when only webhooks had secrets still opens


class Unreadable(Exception):
    """None of the known keys opens it."""


def seal(text: str) -> str:
    """The text, readable only with the keys; empty stays empty."""
    return _ring().encrypt(text.encode()).decode() if text else ""


def opened(sealed: str) -> str:
    """What was sealed. Raises Unreadable."""
    if not sealed:
        return ""
    try:
        return _ring().decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise Unreadable from None


def resealed(sealed: str) -> str:
    """The same secret, sealed with the newest key. Raises Unreadable."""
    if not sealed:
        return ""
    try:
        return _ring().rotate(sealed.encode()).decode()
    except InvalidToken:
        raise Unreadable from None


def check_keys() -> None:
    """Raise ValueError, which tells no key, unless the settings hold keys."""
    _ring()


def _ring() -> MultiFernet:
    """The keys of now: settings may change, in tests at least."""
    return _keys(conf.SECRET_KEYS, settings.SECRET_KEY, tuple(settings.SECRET_KEY_FALLBACKS))


@lru_cache(maxsize=4)
def _keys(own: str, django: str | bytes, fallbacks: tuple[str | bytes, ...]) -> MultiFernet:
    """Own keys first; those made from Django's still open what was sealed before there were any."""
    named = [key.strip() for key in own.split(",") if key.strip()]
    return MultiFernet([*map(_fernet, named), *map(_made, (django, *fallbacks))])


def _fernet(key: str) -> Fernet:
    try:
        return Fernet(key)
    except ValueError:
        raise ValueError("A2A_SECRET_KEYS must be Fernet keys: 32 bytes, URL-safe base64") from None


def _made(key: str | bytes) -> Fernet:
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=PURPOSE).derive(force_bytes(key))
    return Fernet(base64.urlsafe_b64encode(derived))
