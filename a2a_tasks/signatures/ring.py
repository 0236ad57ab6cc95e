"""The card keys in the settings (docs/decisions/0010), and the signing of cards with them.

A signature covers the URLs in a card, so cards are signed only if the operator has set the public URL: a client that
chooses the host name of its request must not get that name signed.
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
from a2a_tasks.signatures.signing import sign_card

__all__ = ["Seal", "check_keys", "list_published", "ring", "seal", "signers"]

#: Context of the derivation: it separates the key from all other values of the same secret (RFC 5869 §3.2).
PURPOSE = b"a2a_tasks: ES256 of cards"


@dataclass(frozen=True, slots=True)
class Seal:
    """The signing keys and the signed forms. Equal seals make equal cards."""

    keys: tuple[CardKey, ...]
    loosely: bool

    def on(self, card: Mapping[str, Any], form: str, base_url: str) -> Mapping[str, Any]:
        """Return the signed card; `base_url` is that of the host, without a slash at its end."""
        jku = f"{base_url}/{JWKS_PATH}" if base_url.startswith("https:") else ""
        return sign_card(card, form, self.keys, jku=jku, loosely=self.loosely)


def ring() -> tuple[CardKey, ...]:
    """Return all keys, newest first; none if cards are not signed. Raises ValueError, whose text contains no key."""
    if not (conf.SIGN_CARDS and conf.PUBLIC_URL):
        return ()
    return _ring(conf.CARD_KEYS, settings.SECRET_KEY, tuple(settings.SECRET_KEY_FALLBACKS))


def signers() -> tuple[CardKey, ...]:
    """Return the keys that sign now, newest first."""
    now = time.time()
    return tuple(key for key in ring() if key.signs(now))


def list_published() -> tuple[CardKey, ...]:
    """Return the keys for verification: all that have not expired, future ones too."""
    now = time.time()
    return tuple(key for key in ring() if key.current(now))


def seal() -> Seal:
    """Return the current signing keys and signed forms."""
    return Seal(signers(), conf.CARD_SIGNED_FORMS == "both")


def check_keys() -> None:
    """Check that the keys in the settings are valid and that one of them signs.

    Raises ValueError, whose text contains no key.
    """
    keys = ring()
    if keys and not signers():
        raise ValueError("A2A_CARD_KEYS: no key in it has a private half and is valid now")


@lru_cache(maxsize=4)
def _ring(own: str, django: str | bytes, fallbacks: tuple[str | bytes, ...]) -> tuple[CardKey, ...]:
    if not own.strip():
        return tuple(_derive(force_bytes(key)) for key in (django, *fallbacks))
    try:
        keys = tuple(key for text in _texts(own) for key in read_keys(text))
        if len({key.kid for key in keys}) < len(keys):
            raise ValueError("two keys have the same kid")
    except ValueError as flaw:
        raise ValueError(f"A2A_CARD_KEYS: {flaw}") from None
    return keys


def _texts(own: str) -> list[str]:
    """Return the texts with the keys: the setting itself, or the contents of the files that it names."""
    if own.lstrip().startswith(("{", "-----BEGIN")):
        return [own]
    names = [name.strip() for name in own.split(",") if name.strip()]
    return [_text(number, name) for number, name in enumerate(names, 1)]


def _text(number: int, name: str) -> str:
    """Read a key file. Errors do not contain its path: the setting may contain a key by mistake."""
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, ValueError) as fault:
        why = fault.strerror if isinstance(fault, OSError) else "it is not text"
        raise ValueError(f"file {number} cannot be read: {why}") from None


def _derive(secret: bytes) -> CardKey:
    kdf = HKDF(algorithm=SHA256(), length=SEED, salt=None, info=PURPOSE)
    return CardKey.of(p256(kdf.derive(secret)))
