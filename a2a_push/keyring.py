"""What is made from the host's master secrets: for every receiver keys of its own, and those of tokens. Pure.

A receiver is known by the origin of its URLs, so that no receiver can speak as the host to another one
(docs/decisions/0093).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Self
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from a2a_push.bearer import TokenKey
from a2a_push.signing import KeyPair, PublicKey, Secret, Signer, read_key

__all__ = ["Ring", "origin"]

#: Set keys apart from everything else that is made from the same secret (RFC 5869 §3.2).
MASTER, SYMMETRIC, ASYMMETRIC, TOKEN = (
    b"a2a_push: master of webhook keys",
    b"a2a_push: v1 of ",
    b"a2a_push: v1a of ",
    b"a2a_push: ES256",
)
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, repr=False)
class Ring:
    """The live master secrets, newest first. All of them sign; the newest also signs tokens."""

    masters: tuple[bytes, ...]

    @classmethod
    def of(cls, secrets: Iterable[str]) -> Self:
        """The ring of secrets as they are handed around. Raises ValueError, which tells none."""
        return cls(tuple(map(_master, secrets)))

    @classmethod
    def made_from(cls, keys: Iterable[bytes]) -> Self:
        """The ring of a host that has other keys, and no secrets for webhooks."""
        return cls(tuple(_derived(key, MASTER) for key in keys))

    def secrets(self, receiver: str) -> tuple[Secret, ...]:
        """What an origin verifies `v1` with, newest first."""
        return tuple(Secret(_made(master, SYMMETRIC, receiver)) for master in self.masters)

    def pairs(self, receiver: str) -> tuple[KeyPair, ...]:
        """Whose public halves an origin verifies `v1a` with, newest first."""
        return tuple(KeyPair(_made(master, ASYMMETRIC, receiver)) for master in self.masters)

    def signers(self, receiver: str) -> tuple[Signer, ...]:
        """All that signs for an origin."""
        return (*self.secrets(receiver), *self.pairs(receiver))

    def verifiers(self, receiver: str) -> tuple[Secret | PublicKey, ...]:
        """What an origin is given to verify with."""
        return (*self.secrets(receiver), *(pair.public for pair in self.pairs(receiver)))

    def token_keys(self) -> tuple[TokenKey, ...]:
        """What verifies tokens; the first of them signs."""
        return tuple(map(_token_key, self.masters))


def origin(url: str) -> str:
    """Scheme, host and port of a URL, the port only where it is not the usual one (RFC 6454 §6.2)."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    usual = parts.port in (None, _PORTS.get(parts.scheme))
    return f"{parts.scheme}://{host}" + ("" if usual else f":{parts.port}")


def _master(text: str) -> bytes:
    with suppress(ValueError):
        found = read_key(text)
        if isinstance(found, Secret):
            return found.raw
    raise ValueError("not a secret of Standard Webhooks: whsec_ and 24 to 64 bytes in base64")


@lru_cache(maxsize=1024)
def _made(master: bytes, purpose: bytes, receiver: str) -> bytes:
    return _derived(master, purpose + receiver.encode())


@lru_cache(maxsize=8)
def _token_key(master: bytes) -> TokenKey:
    return TokenKey.made(_derived(master, TOKEN, length=TokenKey.SEED))


def _derived(key: bytes, info: bytes, length: int = 32) -> bytes:
    return HKDF(algorithm=SHA256(), length=length, salt=None, info=info).derive(key)
