"""Verifying cards (A2A 1.0 §8.4.3): one valid signature, by a known and current key, by an allowed algorithm.

The caller provides the trusted keys. Only signed data counts: `alg` and `kid` are read from the protected header, and
the returned card contains only signed members.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from a2a_tasks.protocol.errors import A2AError
from a2a_tasks.protocol.jsontext import read
from a2a_tasks.signatures.forms import form_of, loose, payload, strict
from a2a_tasks.signatures.signing import encode_base64url

__all__ = ["ALLOWED", "SignatureHeader", "CardUnverified", "VerifiedCard", "headers", "verify"]

#: Types of keys by algorithm. No `none`, and no symmetric algorithms: with those, every verifier could also sign.
ALLOWED: Mapping[str, str] = {
    "ES256": "EC",
    "ES384": "EC",
    "ES512": "EC",
    "EdDSA": "OKP",
    "Ed25519": "OKP",
    "RS256": "RSA",
    "PS256": "RSA",
}
_KINDS: Mapping[str, type[ECKey] | type[OKPKey] | type[RSAKey]] = {
    "EC": ECKey,
    "OKP": OKPKey,
    "RSA": RSAKey,
}
_PUBLIC = ("kty", "crv", "x", "y", "n", "e")
#: Most signatures of one card: each costs time.
MAX_COUNT = 16
#: Base64url characters of the smallest allowed RSA modulus, 2048 bits.
LEAST_MODULUS = 341
_BASE64URL = re.compile(r"[A-Za-z0-9_-]*")


class CardUnverified(Exception):
    """A card without a valid signature; `reasons` has the reason for each signature."""

    def __init__(self, reasons: Iterable[str]) -> None:
        self.reasons = tuple(reasons)
        super().__init__("; ".join(self.reasons))


@dataclass(frozen=True, slots=True)
class SignatureHeader:
    """The members of a protected header, unverified."""

    algorithm: str
    kid: str
    jku: str


@dataclass(frozen=True, slots=True)
class VerifiedCard:
    """A verified card, and the header of the signature that verified it."""

    header: SignatureHeader
    #: True if the signature is that of the loose form, which omits empty members.
    loose: bool
    #: The signed members. Use this card, not the received one.
    card: Mapping[str, Any]


class _SignatureFlaw(Exception):
    """The reason for which a signature is invalid."""


def verify(
    card: Mapping[str, Any],
    keys: Iterable[Mapping[str, Any]],
    *,
    now: float,
    algorithms: Collection[str] = ALLOWED.keys(),
    loosely: bool = False,
) -> VerifiedCard:
    """Verify a card by trusted JWKs; `now` in seconds since 1970. Raises CardUnverified.

    With `loosely`, signatures of the loose form count too. That form omits empty members, so a requirement without
    scopes may have been removed.
    """
    trusted = list(keys)
    documents = _documents(card, loosely)
    reasons = []
    for number, entry in enumerate(_entries(card), 1):
        try:
            return _verify(entry, documents, trusted, now, algorithms)
        except _SignatureFlaw as flaw:
            reasons.append(f"signature {number}: {flaw}")
    raise CardUnverified(reasons or ["the card is not signed"])


def headers(card: Mapping[str, Any]) -> list[SignatureHeader]:
    """Return the headers of a card's signatures, without unreadable ones. Raises CardUnverified for too many."""
    found = []
    for entry in _entries(card):
        try:
            found.append(_header(entry))
        except _SignatureFlaw:
            continue
    return found


def _entries(card: Mapping[str, Any]) -> list[Any]:
    entries = card.get("signatures") or []
    if not isinstance(entries, list) or len(entries) > MAX_COUNT:
        raise CardUnverified([f"signatures must be an array of at most {MAX_COUNT}"])
    return entries


def _documents(card: Mapping[str, Any], loosely: bool) -> list[tuple[bool, Mapping[str, Any], str]]:
    form = form_of(card)
    documents = [(False, strict(card, form)), (True, loose(card, form) if loosely else None)]
    try:
        return [
            (way, form, encode_base64url(payload(form)))
            for way, form in documents
            if form is not None
        ]
    except ValueError as flaw:
        raise CardUnverified([str(flaw)]) from None


def _verify(
    entry: Any,
    documents: list[tuple[bool, Mapping[str, Any], str]],
    keys: list[Mapping[str, Any]],
    now: float,
    algorithms: Collection[str],
) -> VerifiedCard:
    header = _header(entry)
    if header.algorithm not in ALLOWED or header.algorithm not in algorithms:
        raise _SignatureFlaw(f"{header.algorithm!r} is not allowed")
    signature = _decode(entry.get("signature"), "signature")
    for jwk in _find_keys(header, keys, now):
        for way, form, content in documents:
            if _holds(header.algorithm, jwk, f"{entry['protected']}.{content}".encode(), signature):
                return VerifiedCard(header, way, form)
    raise _SignatureFlaw(f"it does not match the card and the key {header.kid!r}")


def _header(entry: Any) -> SignatureHeader:
    if not isinstance(entry, Mapping):
        raise _SignatureFlaw("it is not an object")
    try:
        header = read(_decode(entry.get("protected"), "protected"))
    except A2AError:
        raise _SignatureFlaw("protected is not JSON") from None
    if not isinstance(header, dict):
        raise _SignatureFlaw("protected is not an object")
    algorithm, kid, jku = header.get("alg"), header.get("kid"), header.get("jku", "")
    if not (isinstance(algorithm, str) and isinstance(kid, str) and kid and isinstance(jku, str)):
        raise _SignatureFlaw("it does not name its algorithm and its key")
    if "crit" in header or "b64" in header:  # RFC 7515 §4.1.11: critical, and not supported
        raise _SignatureFlaw("it has a critical header that is not supported")
    return SignatureHeader(algorithm, kid, jku)


def _decode(text: Any, name: str) -> bytes:
    if not isinstance(text, str) or not _BASE64URL.fullmatch(text) or len(text) % 4 == 1:
        raise _SignatureFlaw(f"{name} is not base64url")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _find_keys(
    header: SignatureHeader, keys: list[Mapping[str, Any]], now: float
) -> Iterator[Mapping[str, Any]]:
    """Yield the usable keys with the `kid` of a header. Raises _SignatureFlaw if there are none."""
    named = [key for key in keys if key.get("kid") == header.kid]
    if not named:
        raise _SignatureFlaw(f"no key {header.kid!r} is known")
    reasons = [(key, _unusable(key, header.algorithm, now)) for key in named]
    usable = [key for key, reason in reasons if not reason]
    if not usable:
        raise _SignatureFlaw(f"key {header.kid!r} {reasons[0][1]}")
    yield from usable


def _unusable(key: Mapping[str, Any], algorithm: str, now: float) -> str:
    """Return the reason why a key must not be used; empty = it may."""
    if key.get("kty") != ALLOWED[algorithm] or key.get("alg", algorithm) not in _same(algorithm):
        return f"is not for {algorithm}"
    if key.get("use", "sig") != "sig" or "verify" not in (key.get("key_ops") or ["verify"]):
        return "is not for signatures"
    if "revoked" in key:
        return "is revoked"
    return _untimely(key, now)


def _untimely(key: Mapping[str, Any], now: float) -> str:
    """Return why a key is not valid now; empty = it is (OpenID Federation 1.0 §8.7, registered for every JWK)."""
    times = {name: key[name] for name in ("nbf", "exp") if name in key}
    if not all(isinstance(at, int | float) for at in times.values()):
        return "has times that cannot be read"
    if times.get("exp", now + 1) <= now:
        return "has expired"
    return "is not valid yet" if times.get("nbf", now) > now else ""


def _same(algorithm: str) -> tuple[str, ...]:
    """Return the names of an algorithm: RFC 9864 gave one of EdDSA's curves a name of its own."""
    return ("EdDSA", "Ed25519") if algorithm in {"EdDSA", "Ed25519"} else (algorithm,)


def _holds(algorithm: str, jwk: Mapping[str, Any], data: bytes, signature: bytes) -> bool:
    if jwk["kty"] == "RSA" and len(str(jwk.get("n", ""))) < LEAST_MODULUS:
        return False
    try:
        key = _KINDS[jwk["kty"]].import_key({name: jwk[name] for name in _PUBLIC if name in jwk})
        model = JWSRegistry.algorithms[algorithm]
        model.check_key(key)
        return bool(model.verify(data, signature, key))
    except (ValueError, TypeError, KeyError, JoseError):  # an invalid key
        return False
