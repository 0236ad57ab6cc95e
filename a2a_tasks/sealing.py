"""Secrets at rest: sealed with the newest key, opened with any that is known (docs/decisions/0016).

A row holds only the output of `seal`; the keys are in the settings of the process, never in the database.
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

__all__ = ["Unsealable", "check_keys", "unseal", "reseal", "seal"]

#: Separates these keys from all other keys derived from SECRET_KEY (RFC 5869 §3.2).
PURPOSE = b"a2a: secrets at rest"


class Unsealable(Exception):
    """The secret is opened by none of the known keys."""


def seal(text: str) -> str:
    """Encrypt a text with the newest key; an empty text stays empty."""
    return _ring().encrypt(text.encode()).decode() if text else ""


def unseal(sealed: str) -> str:
    """Decrypt a sealed text. Raises Unsealable."""
    if not sealed:
        return ""
    try:
        return _ring().decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise Unsealable from None


def reseal(sealed: str) -> str:
    """Seal a secret again with the newest key. Raises Unsealable."""
    if not sealed:
        return ""
    try:
        return _ring().rotate(sealed.encode()).decode()
    except InvalidToken:
        raise Unsealable from None


def check_keys() -> None:
    """Raise ValueError, without any key in its message, unless the settings hold valid keys."""
    _ring()


def _ring() -> MultiFernet:
    """Return the current keys: settings may change, in tests at least."""
    return _keys(conf.SECRET_KEYS, settings.SECRET_KEY, tuple(settings.SECRET_KEY_FALLBACKS))


@lru_cache(maxsize=4)
def _keys(own: str, django: str | bytes, fallbacks: tuple[str | bytes, ...]) -> MultiFernet:
    """Return the configured keys, then those derived from Django's, which still open older secrets."""
    named = [key.strip() for key in own.split(",") if key.strip()]
    return MultiFernet([*map(_fernet, named), *map(_make_fernet, (django, *fallbacks))])


def _fernet(key: str) -> Fernet:
    try:
        return Fernet(key)
    except ValueError:
        raise ValueError("A2A_SECRET_KEYS must be Fernet keys: 32 bytes, URL-safe base64") from None


def _make_fernet(key: str | bytes) -> Fernet:
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=PURPOSE).derive(force_bytes(key))
    return Fernet(base64.urlsafe_b64encode(derived))
