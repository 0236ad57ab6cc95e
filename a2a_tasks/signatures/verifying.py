"""Verifying cards (A2A 1.0 §8.4.3): one good signature, by a known key of today, by an algorithm that is allowed.

Which keys are trusted is for the caller to say. Nothing is believed that is not signed: `alg` and `kid` stand in the
protected header, and what came with the card but is not vouched for is not in what is given back.
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
from a2a_tasks.signatures.signing import encoded

__all__ = ["ALLOWED", "Header", "Unverified", "Verified", "headers", "verify"]

#: By algorithm: the type of its keys. No `none`, and nothing symmetric: whoever could verify could sign.
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
#: Signatures of one card that are looked at: each costs.
MOST = 16
#: Base64url characters of the least modulus of RSA, 2048 bits.
LEAST_MODULUS = 341
_BASE64URL = re.compile(r"[A-Za-z0-9_-]*")


class Unverified(Exception):
    """No signature of the card holds; `reasons` says of each why not."""

    def __init__(self, reasons: Iterable[str]) -> None:
        self.reasons = tuple(reasons)
        super().__init__("; ".join(self.reasons))


@dataclass(frozen=True, slots=True)
class Header:
    """What a protected header says: read, not believed."""

    algorithm: str
    kid: str
    jku: str


@dataclass(frozen=True, slots=True)
class Verified:
    """Who vouches for a card, and for what of it."""

    header: Header
    #: Is it by the form that leaves out what is empty?
    loose: bool
    #: What is vouched for. Go on with this, not with what came.
    card: Mapping[str, Any]


class _Flaw(Exception):
    """Why a signature does not hold."""


def verify(
    card: Mapping[str, Any],
    keys: Iterable[Mapping[str, Any]],
    *,
    now: float,
    algorithms: Collection[str] = ALLOWED.keys(),
    loosely: bool = False,
) -> Verified:
    """Who vouches for the card, by trusted JWKs; `now` in seconds since 1970. Raises Unverified.

    With `loosely` also by a form that tells nothing of empty members: a requirement without scopes may then have been
    taken away.
    """
    trusted = list(keys)
    documents = _documents(card, loosely)
    reasons = []
    for number, entry in enumerate(_entries(card), 1):
        try:
            return _verified(entry, documents, trusted, now, algorithms)
        except _Flaw as flaw:
            reasons.append(f"signature {number}: {flaw}")
    raise Unverified(reasons or ["the card is not signed"])


def headers(card: Mapping[str, Any]) -> list[Header]:
    """What its signatures say of themselves, those left out that cannot be read. Raises Unverified for too many."""
    found = []
    for entry in _entries(card):
        try:
            found.append(_header(entry))
        except _Flaw:
            continue
    return found


def _entries(card: Mapping[str, Any]) -> list[Any]:
    entries = card.get("signatures") or []
    if not isinstance(entries, list) or len(entries) > MOST:
        raise Unverified([f"signatures must be an array of at most {MOST}"])
    return entries


def _documents(card: Mapping[str, Any], loosely: bool) -> list[tuple[bool, Mapping[str, Any], str]]:
    form = form_of(card)
    documents = [(False, strict(card, form)), (True, loose(card, form) if loosely else None)]
    try:
        return [(way, told, encoded(payload(told))) for way, told in documents if told is not None]
    except ValueError as flaw:
        raise Unverified([str(flaw)]) from None


def _verified(
    entry: Any,
    documents: list[tuple[bool, Mapping[str, Any], str]],
    keys: list[Mapping[str, Any]],
    now: float,
    algorithms: Collection[str],
) -> Verified:
    header = _header(entry)
    if header.algorithm not in ALLOWED or header.algorithm not in algorithms:
        raise _Flaw(f"{header.algorithm!r} is not allowed")
    signature = _decoded(entry.get("signature"), "signature")
    for jwk in _fitting(header, keys, now):
        for way, told, content in documents:
            if _holds(header.algorithm, jwk, f"{entry['protected']}.{content}".encode(), signature):
                return Verified(header, way, told)
    raise _Flaw(f"it is not of this card by key {header.kid!r}")


def _header(entry: Any) -> Header:
    if not isinstance(entry, Mapping):
        raise _Flaw("it is not an object")
    try:
        said = read(_decoded(entry.get("protected"), "protected"))
    except A2AError:
        raise _Flaw("protected is not JSON") from None
    if not isinstance(said, dict):
        raise _Flaw("protected is not an object")
    algorithm, kid, jku = said.get("alg"), said.get("kid"), said.get("jku", "")
    if not (isinstance(algorithm, str) and isinstance(kid, str) and kid and isinstance(jku, str)):
        raise _Flaw("it does not name its algorithm and its key")
    if "crit" in said or "b64" in said:  # RFC 7515 §4.1.11: what must be understood, and is not
        raise _Flaw("it wants something understood that is not")
    return Header(algorithm, kid, jku)


def _decoded(text: Any, name: str) -> bytes:
    if not isinstance(text, str) or not _BASE64URL.fullmatch(text) or len(text) % 4 == 1:
        raise _Flaw(f"{name} is not base64url")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _fitting(
    header: Header, keys: list[Mapping[str, Any]], now: float
) -> Iterator[Mapping[str, Any]]:
    """The keys of that name that may be used for it. Raises _Flaw if there are none."""
    named = [key for key in keys if key.get("kid") == header.kid]
    if not named:
        raise _Flaw(f"no key {header.kid!r} is known")
    reasons = [(key, _unusable(key, header.algorithm, now)) for key in named]
    usable = [key for key, reason in reasons if not reason]
    if not usable:
        raise _Flaw(f"key {header.kid!r} {reasons[0][1]}")
    yield from usable


def _unusable(key: Mapping[str, Any], algorithm: str, now: float) -> str:
    """Why a key must not be used; empty = it may."""
    if key.get("kty") != ALLOWED[algorithm] or key.get("alg", algorithm) not in _same(algorithm):
        return f"is not for {algorithm}"
    if key.get("use", "sig") != "sig" or "verify" not in (key.get("key_ops") or ["verify"]):
        return "is not for signatures"
    if "revoked" in key:
        return "is revoked"
    return _untimely(key, now)


def _untimely(key: Mapping[str, Any], now: float) -> str:
    """What OpenID Federation 1.0 §8.7 says of times, which is registered for every JWK."""
    times = {name: key[name] for name in ("nbf", "exp") if name in key}
    if not all(isinstance(at, int | float) for at in times.values()):
        return "has times that cannot be read"
    if times.get("exp", now + 1) <= now:
        return "has expired"
    return "is not valid yet" if times.get("nbf", now) > now else ""


def _same(algorithm: str) -> tuple[str, ...]:
    """The names of an algorithm: RFC 9864 gave one of EdDSA's curves a name of its own."""
    return ("EdDSA", "Ed25519") if algorithm in {"EdDSA", "Ed25519"} else (algorithm,)


def _holds(algorithm: str, jwk: Mapping[str, Any], data: bytes, signature: bytes) -> bool:
    if jwk["kty"] == "RSA" and len(str(jwk.get("n", ""))) < LEAST_MODULUS:
        return False
    try:
        key = _KINDS[jwk["kty"]].import_key({name: jwk[name] for name in _PUBLIC if name in jwk})
        model = JWSRegistry.algorithms[algorithm]
        model.check_key(key)
        return bool(model.verify(data, signature, key))
    except (ValueError, TypeError, KeyError, JoseError):  # a key that is none
        return False
