"""Signatures of notifications by Standard Webhooks 1.0.0, over `id.timestamp.body`.

Symmetric keys (`whsec_`, HMAC-SHA256) sign as `v1`, asymmetric ones (`whsk_`, Ed25519; receivers hold `whpk_`) as
`v1a`. Every active key signs, so that receivers verify with the key they know during a rotation. Pure: keys, id, time
and body in, headers out. https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

__all__ = [
    "ID",
    "SIGNATURE",
    "TIMESTAMP",
    "TOLERANCE_SECONDS",
    "KeyPair",
    "PublicKey",
    "Secret",
    "SignatureMismatch",
    "own_secrets",
    "read_key",
    "sign",
    "verify",
]

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
#: The difference between a timestamp and the clock that the reference libraries allow, in seconds.
TOLERANCE_SECONDS = 300
MIN_LENGTH, MAX_LENGTH = 24, 64
_SIZE = 32
_SECONDS = re.compile(r"[0-9]{1,12}")


class SignatureMismatch(Exception):
    """A notification is not signed by a known key, or not recent; the text gives the reason and no key."""


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

    def matches(self, signature: str, signed: bytes) -> bool:
        """Return whether the signature was made with this key."""
        return signature.isascii() and hmac.compare_digest(signature, self.sign(signed))


@dataclass(frozen=True, slots=True, repr=False)
class PublicKey:
    """A key with which a receiver verifies Ed25519 signatures."""

    raw: bytes

    def __post_init__(self) -> None:
        if len(self.raw) != _SIZE:
            raise ValueError(f"a public webhook key must have {_SIZE} bytes")

    @property
    def text(self) -> str:
        """The form in which the receiver gets it."""
        return "whpk_" + _text(self.raw)

    def matches(self, signature: str, signed: bytes) -> bool:
        """Return whether the signature was made with this key."""
        version, _, value = signature.partition(",")
        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(_bytes(value), signed)
        except (InvalidSignature, ValueError):
            return False
        return version == "v1a"


@dataclass(frozen=True, slots=True, repr=False)
class KeyPair:
    """A key that only the sender has, stored as its seed."""

    seed: bytes

    def __post_init__(self) -> None:
        if len(self.seed) != _SIZE:
            raise ValueError(f"the seed of a webhook key must have {_SIZE} bytes")

    @property
    def text(self) -> str:
        """Seed and public key together, in the form of other senders."""
        return "whsk_" + _text(self.seed + self.public.raw)

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


def read_key(text: str) -> Secret | KeyPair | PublicKey:
    """Return a key from its text form. Raises ValueError, which does not repeat the text."""
    prefix, raw = text[:5], text.partition("_")[2]
    match prefix:
        case "whsec" if text[5:6] == "_":
            return Secret(_bytes(raw))
        case "whpk_":
            return PublicKey(_bytes(raw))
        case "whsk_":
            return _pair(_bytes(raw))
    raise ValueError("a webhook key begins with whsec_, whsk_ or whpk_")


def own_secrets(token: str) -> tuple[Secret, ...]:
    """Return the secrets in a receiver's token, separated by spaces; none if it is an ordinary token."""
    words = token.split()
    try:
        keys = [read_key(word) for word in words]
    except ValueError:
        return ()
    secrets = tuple(key for key in keys if isinstance(key, Secret))
    return secrets if len(secrets) == len(words) else ()


def _pair(raw: bytes) -> KeyPair:
    """Return the key pair of a seed alone, or of a seed with the public key after it."""
    pair = KeyPair(raw[:_SIZE])
    if raw[_SIZE:] not in (b"", pair.public.raw):
        raise ValueError("the halves of a webhook key do not belong together")
    return pair


def sign(keys: Iterable[Signer], id_: str, now: float, body: bytes) -> tuple[tuple[str, str], ...]:
    """Return the three headers of an attempt at `now` (seconds since 1970); without keys no signature."""
    timestamp = int(now)
    signed = _join_signed(id_, str(timestamp), body)
    signatures = " ".join(key.sign(signed) for key in keys)
    signature = ((SIGNATURE, signatures),) if signatures else ()
    return ((ID, id_), (TIMESTAMP, str(timestamp)), *signature)


def verify(
    keys: Iterable[Secret | PublicKey],
    headers: Mapping[str, str],
    body: bytes,
    now: float,
    tolerance: float = TOLERANCE_SECONDS,
) -> str:
    """Verify a notification for a receiver; return its id if one of the keys signed it. Raises SignatureMismatch.

    `now` and `tolerance` are in seconds; header names are case-insensitive.
    """
    received = {name.lower(): value for name, value in headers.items()}
    try:
        id_, timestamp, signatures = received[ID], received[TIMESTAMP], received[SIGNATURE]
    except KeyError as missing:
        raise SignatureMismatch(f"the header {missing.args[0]} is missing") from None
    if not _SECONDS.fullmatch(timestamp) or abs(now - int(timestamp)) > tolerance:
        raise SignatureMismatch("the timestamp is not recent")
    try:
        signed = _join_signed(id_, timestamp, body)
    except ValueError as flaw:
        raise SignatureMismatch(str(flaw)) from None
    verifiers = tuple(keys)
    if not any(key.matches(each, signed) for each in signatures.split(" ") for key in verifiers):
        raise SignatureMismatch("no known key signed it")
    return id_


def _join_signed(id_: str, timestamp: str, body: bytes) -> bytes:
    if "." in id_:
        raise ValueError("the id of a notification must not hold a dot")
    return b".".join((id_.encode(), timestamp.encode(), body))


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _bytes(text: str) -> bytes:
    """Decode base64, with or without padding. Raises ValueError, which does not repeat the text."""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("a webhook key must be base64") from None
