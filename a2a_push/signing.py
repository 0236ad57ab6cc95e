"""Signatures of notifications by Standard Webhooks 1.0.0, over `id.timestamp.body`.

Symmetric keys (`whsec_`, HMAC-SHA256) sign as `v1`, asymmetric ones (`whsk_`, Ed25519; receivers hold `whpk_`) as
`v1a`. Every active key signs, so that receivers verify with the key they know during a rotation. Pure: keys, id, time
and body in, headers out. https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = [
    "ID",
    "SIGNATURE",
    "TIMESTAMP",
    "KeyPair",
    "PublicKey",
    "Secret",
    "own_secrets",
    "read_secret",
    "seems_secret",
    "sign",
]

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
MIN_LENGTH, MAX_LENGTH = 24, 64
_SIZE = 32
_MARK = re.compile("wh(?:sec|sk|pk)_", re.IGNORECASE)


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A key that sender and receiver share: 24 to 64 bytes."""

    raw: bytes

    def __post_init__(self) -> None:
        if not MIN_LENGTH <= len(self.raw) <= MAX_LENGTH:
            raise ValueError(f"a webhook secret must have {MIN_LENGTH} to {MAX_LENGTH} bytes")

    @property
    def text(self) -> str:
        """The form in which the receiver gets it."""
        return "whsec_" + _text(self.raw)

    def sign(self, signed: bytes) -> str:
        """Return one signature, with its version."""
        return "v1," + _text(hmac.digest(self.raw, signed, "sha256"))


@dataclass(frozen=True, slots=True, repr=False)
class PublicKey:
    """A key with which a receiver verifies Ed25519 signatures."""

    raw: bytes

    @property
    def text(self) -> str:
        """The form in which the receiver gets it."""
        return "whpk_" + _text(self.raw)


@dataclass(frozen=True, slots=True, repr=False)
class KeyPair:
    """A key that only the sender has, stored as its seed."""

    seed: bytes

    def __post_init__(self) -> None:
        if len(self.seed) != _SIZE:
            raise ValueError(f"the seed of a webhook key must have {_SIZE} bytes")

    @property
    def public(self) -> PublicKey:
        """The public key."""
        return PublicKey(self._key().public_key().public_bytes_raw())

    def sign(self, signed: bytes) -> str:
        """Return one signature, with its version."""
        return "v1a," + _text(self._key().sign(signed))

    def _key(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self.seed)


Signer = Secret | KeyPair


def read_secret(text: str) -> Secret:
    """Return a secret from its text form, in base64 or base64url, with or without padding.

    Raises ValueError, which does not repeat the text.
    """
    if not text.startswith("whsec_"):
        raise ValueError("a webhook secret begins with whsec_")
    encoded = text.removeprefix("whsec_").replace("-", "+").replace("_", "/")
    try:
        raw = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except ValueError:
        raise ValueError("a webhook secret must be base64") from None
    return Secret(raw)


def seems_secret(token: str) -> bool:
    """Return whether a token is meant as a secret: it has the mark of a key of Standard Webhooks somewhere."""
    return _MARK.search(token) is not None


def own_secrets(token: str) -> tuple[Secret, ...]:
    """Return the secrets in a receiver's token, separated by spaces; none if it is an ordinary token."""
    try:
        return tuple(read_secret(word) for word in token.split())
    except ValueError:
        return ()


def sign(keys: Iterable[Signer], id_: str, now: float, body: bytes) -> tuple[tuple[str, str], ...]:
    """Return the three headers of an attempt at `now` (seconds since 1970); without keys no signature."""
    if "." in id_:
        raise ValueError("the id of a notification must not hold a dot")
    timestamp = str(int(now))
    signed = b".".join((id_.encode(), timestamp.encode(), body))
    signatures = " ".join(key.sign(signed) for key in keys)
    signature = ((SIGNATURE, signatures),) if signatures else ()
    return ((ID, id_), (TIMESTAMP, timestamp), *signature)


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
