"""Signatures of notifications as Standard Webhooks 1.0.0 has them: what is signed is `id.timestamp.body`.

Symmetric keys (`whsec_`, HMAC-SHA256) sign as `v1`, asymmetric ones (`whsk_`, Ed25519; receivers hold `whpk_`) as `v1a`.
Every live key signs, so that receivers verify with the one they know while another takes over. Pure: keys, id, moment
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
    "Unverified",
    "own_secrets",
    "read_key",
    "sign",
    "verify",
]

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
#: What the reference libraries allow a timestamp to differ from their clock, in seconds.
TOLERANCE_SECONDS = 300
SHORTEST, LONGEST = 24, 64
_SIZE = 32
_SECONDS = re.compile(r"[0-9]{1,12}")


class Unverified(Exception):
    """A notification is not what a known key signed, or not of now; the text says why and tells no key."""


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A key that sender and receiver share: 24 to 64 bytes."""

    raw: bytes

    def __post_init__(self) -> None:
        if not SHORTEST <= len(self.raw) <= LONGEST:
            raise ValueError(f"a webhook secret must have {SHORTEST} to {LONGEST} bytes")

    @property
    def text(self) -> str:
        """As it is given to the receiver."""
        return "whsec_" + _text(self.raw)

    def sign(self, signed: bytes) -> str:
        """One signature, with its version."""
        return "v1," + _text(hmac.digest(self.raw, signed, "sha256"))

    def signed(self, signature: str, signed: bytes) -> bool:
        """Is it this key's?"""
        return signature.isascii() and hmac.compare_digest(signature, self.sign(signed))


@dataclass(frozen=True, slots=True, repr=False)
class PublicKey:
    """What a receiver verifies Ed25519 signatures with."""

    raw: bytes

    def __post_init__(self) -> None:
        if len(self.raw) != _SIZE:
            raise ValueError(f"a public webhook key must have {_SIZE} bytes")

    @property
    def text(self) -> str:
        """As it is given to the receiver."""
        return "whpk_" + _text(self.raw)

    def signed(self, signature: str, signed: bytes) -> bool:
        """Is it this key's?"""
        version, _, said = signature.partition(",")
        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(_bytes(said), signed)
        except (InvalidSignature, ValueError):
            return False
        return version == "v1a"


@dataclass(frozen=True, slots=True, repr=False)
class KeyPair:
    """A key only the sender has, by its seed."""

    seed: bytes

    def __post_init__(self) -> None:
        if len(self.seed) != _SIZE:
            raise ValueError(f"the seed of a webhook key must have {_SIZE} bytes")

    @property
    def text(self) -> str:
        """Seed and public key together, as other senders keep it."""
        return "whsk_" + _text(self.seed + self.public.raw)

    @property
    def public(self) -> PublicKey:
        """The other half."""
        return PublicKey(self._key().public_key().public_bytes_raw())

    def sign(self, signed: bytes) -> str:
        """One signature, with its version."""
        return "v1a," + _text(self._key().sign(signed))

    def _key(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self.seed)


Signer = Secret | KeyPair


def read_key(text: str) -> Secret | KeyPair | PublicKey:
    """A key from the form it is handed around in. Raises ValueError, which does not repeat it."""
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
    """The secrets a receiver gave as its token, separated by spaces; none if it is an ordinary token."""
    words = token.split()
    try:
        keys = [read_key(word) for word in words]
    except ValueError:
        return ()
    secrets = tuple(key for key in keys if isinstance(key, Secret))
    return secrets if len(secrets) == len(words) else ()


def _pair(raw: bytes) -> KeyPair:
    """From the seed alone, or with the public key after it."""
    pair = KeyPair(raw[:_SIZE])
    if raw[_SIZE:] not in (b"", pair.public.raw):
        raise ValueError("the halves of a webhook key do not belong together")
    return pair


def sign(keys: Iterable[Signer], id_: str, now: float, body: bytes) -> tuple[tuple[str, str], ...]:
    """The three headers of an attempt made at `now` (seconds since 1970); no signature without keys."""
    timestamp = int(now)
    signed = _signed(id_, str(timestamp), body)
    signatures = " ".join(key.sign(signed) for key in keys)
    said = ((SIGNATURE, signatures),) if signatures else ()
    return ((ID, id_), (TIMESTAMP, str(timestamp)), *said)


def verify(
    keys: Iterable[Secret | PublicKey],
    headers: Mapping[str, str],
    body: bytes,
    now: float,
    tolerance: float = TOLERANCE_SECONDS,
) -> str:
    """The receiver's half: the id of a notification that one of the keys signed. Raises Unverified.

    `now` and `tolerance` are in seconds; names of headers are read whatever their case.
    """
    said = {name.lower(): value for name, value in headers.items()}
    try:
        id_, timestamp, signatures = said[ID], said[TIMESTAMP], said[SIGNATURE]
    except KeyError as missing:
        raise Unverified(f"there is no header {missing.args[0]}") from None
    if not _SECONDS.fullmatch(timestamp) or abs(now - int(timestamp)) > tolerance:
        raise Unverified("the timestamp is not of now")
    try:
        signed = _signed(id_, timestamp, body)
    except ValueError as flaw:
        raise Unverified(str(flaw)) from None
    known = tuple(keys)
    if not any(key.signed(each, signed) for each in signatures.split(" ") for key in known):
        raise Unverified("no known key signed it")
    return id_


def _signed(id_: str, timestamp: str, body: bytes) -> bytes:
    if "." in id_:
        raise ValueError("the id of a notification must not hold a dot")
    return b".".join((id_.encode(), timestamp.encode(), body))


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _bytes(text: str) -> bytes:
    """Base64, with its padding or without. Raises ValueError, which does not repeat it."""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("a webhook key must be base64") from None
