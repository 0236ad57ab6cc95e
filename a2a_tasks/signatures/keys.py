"""Keys that sign cards: read from PEM or a JWK Set, generated, or derived from a secret.

The members `nbf` and `exp` (seconds since 1970), `kid` and `alg` of a JWK are respected. No error contains a key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    EllipticCurvePrivateKey,
    derive_private_key,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey

__all__ = ["ALGORITHMS", "JWKS_PATH", "SEED", "CardKey", "p256", "read_keys"]

#: Path of the public halves of the host's keys, below its base URL.
JWKS_PATH = ".well-known/jwks.json"
#: Bytes of the seed of a P-256 key: 128 bits more than the key, so that all are equally likely (FIPS 186-5 §A.4.1).
SEED = 48
#: The order of the group of P-256 (FIPS 186-5 §A.1.1, SP 800-186 §3.2.1.3).
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
#: Algorithms by `kty` and `crv`.
ALGORITHMS = {("EC", "P-256"): "ES256", ("OKP", "Ed25519"): "EdDSA"}
#: Classes of keys by `kty`.
KINDS: Mapping[str, type[ECKey] | type[OKPKey]] = {"EC": ECKey, "OKP": OKPKey}
#: Members of a JWK with the key itself (RFC 7518 §6.2, RFC 8037 §2).
MEMBERS = ("kty", "crv", "x", "y", "d")
#: Members of a JWK that limit its use in time.
TIMES = ("nbf", "exp")
_PEM = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----.+?-----END \1-----", re.DOTALL)
_HALF = 32

Jwk = ECKey | OKPKey


class Unfit(ValueError):
    """A key that cannot sign cards. The text contains nothing of the key."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class CardKey:
    """A key with its `kid`. Without a private half it signs nothing, and is only published for verification."""

    kid: str
    algorithm: str
    jwk: Jwk
    times: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, jwk: Jwk, members: Mapping[str, Any] | None = None) -> Self:
        """Make a key from a JWK and the members about it. Raises ValueError."""
        members = members or {}
        algorithm = ALGORITHMS.get((jwk.key_type, jwk.curve_name))
        if algorithm is None:
            raise Unfit("not on P-256 (ES256), and not of Ed25519 (EdDSA)")
        if members.get("alg", algorithm) != algorithm:
            raise Unfit(f"`alg` is not {algorithm}")
        if members.get("use", "sig") != "sig":
            raise Unfit('`use` is not "sig"')
        if "revoked" in members:
            raise Unfit("revoked: take it out")
        times = {name: members[name] for name in TIMES if name in members}
        if not all(
            isinstance(at, int | float) and not isinstance(at, bool) for at in times.values()
        ):
            raise Unfit("nbf and exp must be seconds since 1970")
        kid = members.get("kid") or jwk.thumbprint()
        if not isinstance(kid, str):
            raise Unfit("kid must be a string")
        return cls(kid, algorithm, jwk, times)

    @classmethod
    def new(cls, algorithm: str) -> Self:
        """Generate a key."""
        of_curve = algorithm == "ES256"
        return cls.of(ECKey.generate_key("P-256") if of_curve else OKPKey.generate_key("Ed25519"))

    def current(self, now: float) -> bool:
        """Return whether the key has not expired (RFC 7519 §4.1.4)."""
        return now < self.times.get("exp", float("inf"))

    def signs(self, now: float) -> bool:
        """Return whether the key can sign cards now."""
        return bool(self.jwk.is_private) and self.times.get("nbf", 0) <= now and self.current(now)

    def sign(self, data: bytes) -> bytes:
        """Return the signature in the form of JWS (RFC 7518 §3.4, RFC 8037 §3.1); it is deterministic (RFC 6979)."""
        private = self.jwk.private_key
        if isinstance(private, Ed25519PrivateKey):
            return private.sign(data)
        assert isinstance(private, EllipticCurvePrivateKey)  # noqa: S101 - callers check `signs` first
        halves = decode_dss_signature(
            private.sign(data, ECDSA(SHA256(), deterministic_signing=True))
        )
        return b"".join(half.to_bytes(_HALF, "big") for half in halves)

    def as_dict(self, *, private: bool) -> dict[str, Any]:
        """Return the JWK (RFC 7517 §4); `nbf` and `exp` are registered members."""
        about = {"kid": self.kid, "use": "sig", "alg": self.algorithm, **self.times}
        own = self.jwk.as_dict(private=private)
        return {name: own[name] for name in MEMBERS if name in own} | about


def p256(seed: bytes) -> ECKey:
    """Derive the key of a seed of `SEED` bytes, deterministically."""
    scalar = int.from_bytes(seed, "big") % (ORDER - 1) + 1
    private = derive_private_key(scalar, SECP256R1())
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return ECKey.import_key(pem)


def read_keys(text: str) -> tuple[CardKey, ...]:
    """Read the keys in a text, in its order: a JWK Set, a JWK, or any number of PEM blocks.

    Raises ValueError, whose text contains no key.
    """
    is_json = text.lstrip().startswith("{")
    entries = _jwks(text) if is_json else [found[0].encode() for found in _PEM.finditer(text)]
    found = tuple(_name_keys(entries))
    if not found:
        raise ValueError("there is no key in it")
    return found


def _name_keys(entries: Iterable[Mapping[str, Any] | bytes]) -> Iterator[CardKey]:
    for number, entry in enumerate(entries, 1):
        try:
            yield _key(entry)
        except Unfit as flaw:
            raise ValueError(f"key {number}: {flaw}") from None
        except (ValueError, TypeError, KeyError, JoseError):  # their texts may show the key
            raise ValueError(f"key {number} cannot be read") from None


def _key(entry: Mapping[str, Any] | bytes) -> CardKey:
    if isinstance(entry, bytes):
        return CardKey.of(_import_pem(entry))
    kind = KINDS.get(entry["kty"])
    if kind is None:
        raise Unfit("neither EC nor OKP")
    jwk = kind.import_key({name: entry[name] for name in MEMBERS if name in entry})
    # The import of a JWK on an Edwards curve does not check that its halves match.
    if (
        jwk.is_private
        and kind.import_key(jwk.as_pem(private=True)).thumbprint() != jwk.thumbprint()
    ):
        raise Unfit("made of two halves that do not belong together")
    return CardKey.of(jwk, entry)


def _import_pem(pem: bytes) -> Jwk:
    try:
        return ECKey.import_key(pem)
    except (ValueError, TypeError, JoseError):
        return OKPKey.import_key(pem)


def _jwks(text: str) -> list[Mapping[str, Any]]:
    try:
        document = json.loads(text)
        keys = document.get("keys", [document])
    except ValueError:
        raise ValueError("it is not JSON") from None
    if not (isinstance(keys, list) and all(isinstance(key, dict) for key in keys)):
        raise ValueError("it is not a JWK Set")
    return keys
