"""How a receiver knows that a notification is the host's: signatures, a token it gave, a token of the host.

Nothing here is of the host's code: it is what a stranger writes, with `cryptography` and `joserfc`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

__all__ = ["HostKeys", "Key", "Proofs", "Unproven", "fetched"]

#: Seconds a timestamp may differ from our clock (Standard Webhooks), and how seldom keys are fetched anew.
TOLERANCE, PAUSE = 300, 30
SECONDS = re.compile(r"[0-9]{1,12}")
JWKS = "/.well-known/jwks.json"
#: Kinds of keys: the version of their signatures, and how many bytes they may have.
KINDS = {"whsec": ("v1", range(24, 65)), "whpk": ("v1a", range(32, 33))}

#: Headers by their names in lower case.
Headers = Mapping[str, str]


class Unproven(Exception):
    """It may be anybody's; the text says why, for whoever runs the receiver."""


@dataclass(frozen=True, repr=False)
class Key:
    """A key of Standard Webhooks."""

    #: `v1`: a secret we share with the host; `v1a`: the host's public half.
    version: str
    raw: bytes

    @classmethod
    def read(cls, text: str) -> Key:
        """A key from the form it is handed around in, `whsec_...` or `whpk_...`. Raises ValueError, which does not repeat it."""
        kind, _, coded = text.partition("_")
        version, sizes = KINDS.get(kind, ("", range(0)))
        try:
            raw = base64.b64decode(coded + "=" * (-len(coded) % 4), validate=True)
        except binascii.Error:
            raw = b""
        if len(raw) not in sizes:
            raise ValueError("a key is whsec_ or whpk_ and base64")
        return cls(version, raw)

    def made(self, signature: str, signed: bytes) -> bool:
        """Is the signature, with its version before a comma, this key's?"""
        version, _, coded = signature.partition(",")
        if version != self.version:
            return False
        try:
            said = base64.b64decode(coded, validate=True)
            if version == "v1":
                return hmac.compare_digest(said, hmac.digest(self.raw, signed, "sha256"))
            Ed25519PublicKey.from_public_bytes(self.raw).verify(said, signed)
        except (ValueError, InvalidSignature):
            return False
        return True


def fetched(host: str) -> KeySet:
    """The public keys of a host. Raises OSError or ValueError if there are none to be had."""
    with urllib.request.urlopen(host.rstrip("/") + JWKS, timeout=5) as answer:  # noqa: S310 - our own host
        return KeySet.import_key_set(json.loads(answer.read(65536)))


class HostKeys:
    """The public keys of a host, fetched when a token names one that is not known, not oftener than every 30 s."""

    def __init__(self, fetch: Callable[[], KeySet]) -> None:
        self._fetch = fetch
        self._known: KeySet | None = None
        self._fault = ""
        self._next = 0.0
        self._lock = threading.Lock()

    def claims(self, token: str) -> dict[str, object]:
        """What a token says, once its signature is checked. Raises JoseError or ValueError."""
        try:
            return self._read(token, self._keys(again=False))
        except (JoseError, ValueError):
            return self._read(token, self._keys(again=True))

    def _read(self, token: str, keys: KeySet) -> dict[str, object]:
        return jwt.decode(token, keys, algorithms=["ES256"]).claims

    def _keys(self, *, again: bool) -> KeySet:
        with self._lock:
            if (again or self._known is None) and time.monotonic() >= self._next:
                self._next = time.monotonic() + PAUSE
                try:
                    self._known = self._fetch()
                except (OSError, ValueError, JoseError) as fault:
                    self._fault = str(fault)
            if self._known is None:
                raise ValueError(f"the host's keys cannot be fetched: {self._fault}")
            return self._known


@dataclass(frozen=True, kw_only=True)
class Proofs:
    """What is asked of a notification: all of what is known here, and at least one thing."""

    #: Keys of Standard Webhooks: one signature by one of them is enough.
    keys: tuple[Key, ...] = ()
    #: The token that was given when the webhook was registered.
    token: str = ""
    #: The keys of the host's own tokens, and the origin they must be for.
    host: HostKeys | None = None
    origin: str = ""

    def check(self, headers: Headers, body: bytes, now: float) -> list[str]:
        """What was proven, in words. Raises Unproven."""
        asked = (
            (bool(self.keys), self._signature),
            (bool(self.token), self._token),
            (self.host is not None, self._host_token),
        )
        proven = [check(headers, body, now) for wanted, check in asked if wanted]
        if not proven:
            raise Unproven("this receiver knows no key")
        return proven

    def _signature(self, headers: Headers, body: bytes, now: float) -> str:
        id_, moment = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
        if not SECONDS.fullmatch(moment) or abs(now - int(moment)) > TOLERANCE:
            raise Unproven("webhook-timestamp is not of now")
        signed = b".".join((id_.encode("latin-1", "replace"), moment.encode(), body))
        for signature in headers.get("webhook-signature", "").split():
            if any(key.made(signature, signed) for key in self.keys):
                return f"signature {signature.partition(',')[0]}"
        raise Unproven("no key of ours signed it")

    def _token(self, headers: Headers, body: bytes, now: float) -> str:
        said = headers.get("x-a2a-notification-token", "")
        if not hmac.compare_digest(said.encode(), self.token.encode()):
            raise Unproven("the notification token is not ours")
        return "token"

    def _host_token(self, headers: Headers, body: bytes, now: float) -> str:
        assert self.host is not None  # noqa: S101 - `check` has looked
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            raise Unproven("there is no token of the host")
        try:
            said = self.host.claims(token)
        except (JoseError, ValueError) as flaw:
            raise Unproven(f"the host's token: {flaw}") from flaw
        for wrong, why in self._wrong(said, headers, body, now):
            if wrong:
                raise Unproven(f"the host's token {why}")
        return "host's token"

    def _wrong(
        self, said: dict[str, object], headers: Headers, body: bytes, now: float
    ) -> tuple[tuple[bool, str], ...]:
        ends = said.get("exp")
        return (
            (said.get("aud") != self.origin, "is for somebody else"),
            (not isinstance(ends, int | float) or ends < now, "has expired"),
            (said.get("jti") != headers.get("webhook-id"), "is of another notification"),
            (
                said.get("request_body_sha256") != hashlib.sha256(body).hexdigest(),
                "is of another body",
            ),
        )
