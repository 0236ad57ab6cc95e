"""Keys that sign cards: read from PEM or a JWK Set, made anew, or made from a secret.

What is said of a key in its JWK is heeded: `nbf` and `exp` (seconds since 1970), `kid`, `alg`. No message tells a key.
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

#: Where the public halves of the host's keys are, below its base URL.
JWKS_PATH = ".well-known/jwks.json"
#: Bytes a key on P-256 is made from: 128 bits more than it has, so that none is likelier (FIPS 186-5 §A.4.1).
SEED = 48
#: The order of the group of P-256 (FIPS 186-5 §A.1.1, SP 800-186 §3.2.1.3).
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
#: By kty and crv: the algorithm.
ALGORITHMS = {("EC", "P-256"): "ES256", ("OKP", "Ed25519"): "EdDSA"}
#: By kty.
KINDS: Mapping[str, type[ECKey] | type[OKPKey]] = {"EC": ECKey, "OKP": OKPKey}
#: Members of a JWK that are the key (RFC 7518 §6.2, RFC 8037 §2).
MEMBERS = ("kty", "crv", "x", "y", "d")
#: Members of a JWK that say how it may be used.
TIMES = ("nbf", "exp")
_PEM = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----.+?-----END \1-----", re.DOTALL)
_HALF = 32

Jwk = ECKey | OKPKey


class Unfit(ValueError):
    """A key, but none that signs cards. Its text tells nothing of it."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class CardKey:
    """A key by its name. One without a private half signs nothing, and is shown to those who verify."""

    kid: str
    algorithm: str
    jwk: Jwk
    times: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, jwk: Jwk, said: Mapping[str, Any] | None = None) -> Self:
        """A key, and what is said of it. Raises ValueError."""
        said = said or {}
        algorithm = ALGORITHMS.get((jwk.key_type, jwk.curve_name))
        if algorithm is None:
            raise Unfit("not on P-256 (ES256), and not of Ed25519 (EdDSA)")
        if said.get("alg", algorithm) != algorithm or said.get("use", "sig") != "sig":
            raise Unfit(f"said to be for something other than {algorithm}")
        if "revoked" in said:
            raise Unfit("revoked: take it out")
        times = {name: said[name] for name in TIMES if name in said}
        if not all(
            isinstance(at, int | float) and not isinstance(at, bool) for at in times.values()
        ):
            raise Unfit("not well told: nbf and exp are seconds since 1970")
        kid = said.get("kid") or jwk.thumbprint()
        if not isinstance(kid, str):
            raise Unfit("not well named: kid is a text")
        return cls(kid, algorithm, jwk, times)

    @classmethod
    def new(cls, algorithm: str) -> Self:
        """A key nobody has had before."""
        of_curve = algorithm == "ES256"
        return cls.of(ECKey.generate_key("P-256") if of_curve else OKPKey.generate_key("Ed25519"))

    def current(self, now: float) -> bool:
        """Has it not expired? (RFC 7519 §4.1.4)"""
        return now < self.times.get("exp", float("inf"))

    def signs(self, now: float) -> bool:
        """Is it to sign cards now?"""
        return bool(self.jwk.is_private) and self.times.get("nbf", 0) <= now and self.current(now)

    def sign(self, data: bytes) -> bytes:
        """The signature as JWS has it (RFC 7518 §3.4, RFC 8037 §3.1): of the same bytes always the same (RFC 6979)."""
        private = self.jwk.private_key
        if isinstance(private, Ed25519PrivateKey):
            return private.sign(data)
        assert isinstance(private, EllipticCurvePrivateKey)  # noqa: S101 - whoever asks knows that it signs
        halves = decode_dss_signature(
            private.sign(data, ECDSA(SHA256(), deterministic_signing=True))
        )
        return b"".join(half.to_bytes(_HALF, "big") for half in halves)

    def as_dict(self, *, private: bool) -> dict[str, Any]:
        """The JWK (RFC 7517 §4); the times are those of its registry."""
        about = {"kid": self.kid, "use": "sig", "alg": self.algorithm, **self.times}
        own = self.jwk.as_dict(private=private)
        return {name: own[name] for name in MEMBERS if name in own} | about


def p256(seed: bytes) -> ECKey:
    """The key of a seed of `SEED` bytes, always the same."""
    scalar = int.from_bytes(seed, "big") % (ORDER - 1) + 1
    private = derive_private_key(scalar, SECP256R1())
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return ECKey.import_key(pem)


def read_keys(text: str) -> tuple[CardKey, ...]:
    """The keys in a text, in its order: a JWK Set, a JWK, or any number of PEM blocks. Raises ValueError, which tells none."""
    found = tuple(_numbered(_jwks(text) if text.lstrip().startswith("{") else _pems(text)))
    if not found:
        raise ValueError("there is no key in it")
    return found


def _numbered(entries: Iterable[Mapping[str, Any] | bytes]) -> Iterator[CardKey]:
    for number, entry in enumerate(entries, 1):
        try:
            yield _key(entry)
        except Unfit as flaw:
            raise ValueError(f"key {number} is {flaw}") from None
        except (ValueError, TypeError, KeyError, JoseError):  # their texts may have parts of it
            raise ValueError(f"key {number} cannot be read") from None


def _key(entry: Mapping[str, Any] | bytes) -> CardKey:
    if isinstance(entry, bytes):
        return CardKey.of(_imported(entry))
    kind = KINDS.get(entry["kty"])
    if kind is None:
        raise Unfit("neither EC nor OKP")
    jwk = kind.import_key({name: entry[name] for name in MEMBERS if name in entry})
    # Of a JWK on an Edwards curve the halves are believed as they stand.
    if (
        jwk.is_private
        and kind.import_key(jwk.as_pem(private=True)).thumbprint() != jwk.thumbprint()
    ):
        raise Unfit("made of two halves that do not belong together")
    return CardKey.of(jwk, entry)


def _imported(pem: bytes) -> Jwk:
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


def _pems(text: str) -> list[bytes]:
    return [found[0].encode() for found in _PEM.finditer(text)]
