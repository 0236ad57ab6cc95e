"""Tokens by which the host says to a receiver who it is, where the receiver gave it no credentials.

A JWT (RFC 7519) signed by ES256, verified with the public keys at `/.well-known/jwks.json`. Its claims are those the
push notification topics of A2A name, and `request_body_sha256` as receivers made from Google's first samples check it.
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
#: As long as the receivers of the samples believe a token.
LIFETIME_SECONDS = 300


@dataclass(frozen=True, slots=True, repr=False)
class TokenKey:
    """A private key on P-256; its name, `kid`, is its thumbprint (RFC 7638)."""

    #: Bytes a key is made from.
    SEED: ClassVar[int] = SEED
    jwk: ECKey

    @classmethod
    def made(cls, seed: bytes) -> Self:
        """The key of a seed, always the same."""
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
    """A token for one attempt: of this body, to this origin, for five minutes from `now` (seconds since 1970).

    `of` are the claims that say whose webhook it is.
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
    """The public halves as a JWK Set (RFC 7517 §5)."""
    return dict(KeySet([key.jwk for key in keys]).as_dict(private=False))
