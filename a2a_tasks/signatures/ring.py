"""The keys of cards that the settings say (docs/decisions/0101), and cards signed by them.

A signature vouches for the URLs in a card, so cards are signed only where the operator has said what these are: a
client that chooses the host name of its request must not get that signed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.utils.encoding import force_bytes

from a2a_tasks.conf import conf
from a2a_tasks.signatures.keys import JWKS_PATH, SEED, CardKey, p256, read_keys
from a2a_tasks.signatures.signing import signed

__all__ = ["Seal", "check_keys", "published", "ring", "seal", "signers"]

#: Sets the key apart from everything else that is made from the same secret (RFC 5869 §3.2).
PURPOSE = b"a2a_tasks: ES256 of cards"


@dataclass(frozen=True, slots=True)
class Seal:
    """The keys that sign, and how. Equal ones make equal cards."""

    keys: tuple[CardKey, ...]
    loosely: bool

    def on(self, card: Mapping[str, Any], form: str, base_url: str) -> Mapping[str, Any]:
        """The card, signed; `base_url` is that of the host, without a slash at its end."""
        jku = f"{base_url}/{JWKS_PATH}" if base_url.startswith("https:") else ""
        return signed(card, form, self.keys, jku=jku, loosely=self.loosely)


def ring() -> tuple[CardKey, ...]:
    """All keys, newest first; none where cards are not signed. Raises ValueError, which tells no key."""
    if not (conf.SIGN_CARDS and conf.PUBLIC_URL):
        return ()
    return _ring(conf.CARD_KEYS, settings.SECRET_KEY, tuple(settings.SECRET_KEY_FALLBACKS))


def signers() -> tuple[CardKey, ...]:
    """Those that sign now, newest first."""
    now = time.time()
    return tuple(key for key in ring() if key.signs(now))


def published() -> tuple[CardKey, ...]:
    """Those that cards may still be verified with, and those to come."""
    now = time.time()
    return tuple(key for key in ring() if key.current(now))


def seal() -> Seal:
    """What is put on a card now."""
    return Seal(signers(), conf.CARD_SIGNED_FORMS == "both")


def check_keys() -> None:
    """Raise ValueError, which tells no key, unless the settings hold keys, one of which signs."""
    keys = ring()
    if keys and not signers():
        raise ValueError("A2A_CARD_KEYS: no key in it has a private half and is valid now")


@lru_cache(maxsize=4)
def _ring(own: str, django: str | bytes, fallbacks: tuple[str | bytes, ...]) -> tuple[CardKey, ...]:
    if not own.strip():
        return tuple(_derived(force_bytes(key)) for key in (django, *fallbacks))
    try:
        keys = tuple(key for text in _texts(own) for key in read_keys(text))
        if len({key.kid for key in keys}) < len(keys):
            raise ValueError("two keys have the same kid")
    except ValueError as flaw:
        raise ValueError(f"A2A_CARD_KEYS: {flaw}") from None
    return keys


def _texts(own: str) -> list[str]:
    """What holds the keys: the setting itself, or the files it names."""
    if own.lstrip().startswith(("{", "-----BEGIN")):
        return [own]
    names = [name.strip() for name in own.split(",") if name.strip()]
    return [_text(number, name) for number, name in enumerate(names, 1)]


def _text(number: int, name: str) -> str:
    """What is in a file. Its name is not told: it may be a key that somebody took for what belongs there."""
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, ValueError) as fault:
        why = fault.strerror if isinstance(fault, OSError) else "it is not text"
        raise ValueError(f"file {number} cannot be read: {why}") from None


def _derived(secret: bytes) -> CardKey:
    kdf = HKDF(algorithm=SHA256(), length=SEED, salt=None, info=PURPOSE)
    return CardKey.of(p256(kdf.derive(secret)))
