"""Verification of notifications as a receiver does it: `v1`, and `v1a`, which the reference libraries do not know."""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Iterable, Mapping

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from a2a_push.signing import ID, SIGNATURE, TIMESTAMP, PublicKey, Secret

#: The difference between a timestamp and the clock that the reference libraries allow, in seconds.
TOLERANCE_SECONDS = 300


class SignatureMismatch(Exception):
    """A notification is not signed by a known key, or not recent."""


def verify(
    keys: Iterable[Secret | PublicKey], headers: Mapping[str, str], body: bytes, now: float
) -> str:
    """Return the id of a notification if one of the keys signed it. Raises SignatureMismatch."""
    received = {name.lower(): value for name, value in headers.items()}
    try:
        id_, timestamp, signatures = received[ID], received[TIMESTAMP], received[SIGNATURE]
    except KeyError as missing:
        raise SignatureMismatch(f"the header {missing.args[0]} is missing") from None
    recent = re.fullmatch(r"[0-9]{1,12}", timestamp)
    if not recent or abs(now - int(timestamp)) > TOLERANCE_SECONDS:
        raise SignatureMismatch("the timestamp is not recent")
    signed = b".".join((id_.encode(), timestamp.encode(), body))
    if not any(_matches(key, each, signed) for each in signatures.split(" ") for key in keys):
        raise SignatureMismatch("no known key signed it")
    return id_


def _matches(key: Secret | PublicKey, signature: str, signed: bytes) -> bool:
    if isinstance(key, Secret):
        return signature.isascii() and hmac.compare_digest(signature, key.sign(signed))
    version, _, value = signature.partition(",")
    try:
        raw = base64.b64decode(value, validate=True)
        Ed25519PublicKey.from_public_bytes(key.raw).verify(raw, signed)
    except (InvalidSignature, ValueError):
        return False
    return version == "v1a"
