"""Tokens that authenticate the host to a receiver, for webhooks without credentials of their own.

A token is a JWT (RFC 7519) signed by ES256, verified with the public keys at `/.well-known/jwks.json`. Its claims are
those of A2A's push notification topics, and `request_body_sha256` as checked by receivers based on Google's first
samples.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet

from a2a_tasks.signatures.keys import SEED, p256

__all__ = ["LIFETIME_SECONDS", "TokenKey", "jwks", "mint"]

ALGORITHM = "ES256"
#: The receivers of the samples accept a token for this time.
LIFETIME_SECONDS = 300


@dataclass(frozen=True, slots=True, repr=False)
class TokenKey:
    """A private key on P-256; its name, `kid`, is its thumbprint (RFC 7638)."""

    #: Bytes of the seed of a key.
    SEED: ClassVar[int] = SEED
    jwk: ECKey

    @classmethod
    def from_seed(cls, seed: bytes) -> Self:
        """Return the key of a seed, always the same one."""
        key = ECKey.import_key(p256(seed).as_dict(private=True), {"use": "sig", "alg": ALGORITHM})
        key.ensure_kid()
        return cls(key)


def mint(
    key: TokenKey,
    *,
    issuer: str,
    audience: str,
    id_: str,
    of: Mapping[str, str],
    body: bytes,
    now: float,
) -> str:
    """Return a token for one attempt: for this body and this origin, for five minutes from `now` (seconds since 1970).

    `of` are the claims that identify the webhook.
    """
    issued = int(now)
    claims = {
        "iss": issuer,
        "aud": audience,
        "iat": issued,
        "exp": issued + LIFETIME_SECONDS,
        "jti": id_,
        **of,
        "request_body_sha256": hashlib.sha256(body).hexdigest(),
    }
    header = {"alg": ALGORITHM, "typ": "JWT", "kid": key.jwk.kid}
    return jwt.encode(header, claims, key.jwk)


def jwks(keys: Iterable[TokenKey]) -> dict[str, Any]:
    """Return the public keys as a JWK Set (RFC 7517 §5)."""
    return dict(KeySet([key.jwk for key in keys]).as_dict(private=False))
