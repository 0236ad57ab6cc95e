"""Keys derived from the host's master secrets: one set for each audience, one for tokens. Pure.

Keys belong to an audience: no tenant, and no webhook with a name of its own, can verify with the keys of another one,
even if their receivers share an origin (docs/decisions/0019).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Self
from urllib.parse import urlsplit

import msgspec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from a2a_push.bearer import TokenKey
from a2a_push.signing import KeyPair, PublicKey, Secret, Signer, read_secret

__all__ = ["Audience", "KeyRing", "audience_of", "origin"]

#: Separate keys from all other keys derived from the same secret (RFC 5869 §3.2).
MASTER, SYMMETRIC, ASYMMETRIC, TOKEN = (
    b"a2a_push: master of webhook keys",
    b"a2a_push: v1 for ",
    b"a2a_push: v1a for ",
    b"a2a_push: ES256",
)
_PORTS = {"http": 80, "https": 443}
#: Ids that the host gives to webhooks without one (`operations/webhook.py`), besides the ids of tasks.
_GIVEN = re.compile(r"|default|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Audience(NamedTuple):
    """The audience of keys."""

    tenant: str
    #: Origin of the receiver's URLs.
    origin: str
    #: Id of the webhook, if its client has named it; the name may be equal for all its tasks.
    config: str = ""


def audience_of(tenant: str, url: str, config_id: str = "", task_id: str = "") -> Audience:
    """Return the audience of a webhook's keys.

    The task's id, a UUID and `default` are no names: the host gives such ids.
    """
    named = config_id != task_id and not _GIVEN.fullmatch(config_id)
    return Audience(tenant, origin(url), config_id if named else "")


@dataclass(frozen=True, slots=True, repr=False)
class KeyRing:
    """The active master secrets, newest first. All of them sign; the newest also signs tokens."""

    masters: tuple[bytes, ...]

    @classmethod
    def of(cls, secrets: Iterable[str]) -> Self:
        """Return the ring of secrets in text form. Raises ValueError, without the secrets."""
        return cls(tuple(map(_master, secrets)))

    @classmethod
    def from_keys(cls, keys: Iterable[bytes]) -> Self:
        """Return the ring of a host with other keys but no secrets for webhooks."""
        return cls(tuple(_derive(key, MASTER) for key in keys))

    def secrets(self, audience: Audience) -> tuple[Secret, ...]:
        """Return the secrets with which an audience verifies `v1`, newest first."""
        return tuple(Secret(_make_key(master, SYMMETRIC, audience)) for master in self.masters)

    def pairs(self, audience: Audience) -> tuple[KeyPair, ...]:
        """Return the key pairs whose public keys verify `v1a` for an audience, newest first."""
        return tuple(KeyPair(_make_key(master, ASYMMETRIC, audience)) for master in self.masters)

    def signers(self, audience: Audience) -> tuple[Signer, ...]:
        """Return all keys that sign for an audience."""
        return (*self.secrets(audience), *self.pairs(audience))

    def verifiers(self, audience: Audience) -> tuple[Secret | PublicKey, ...]:
        """Return the keys with which an audience verifies: its secrets, then its public keys."""
        return (*self.secrets(audience), *(pair.public for pair in self.pairs(audience)))

    def token_keys(self) -> tuple[TokenKey, ...]:
        """Return the keys that verify tokens; the first of them signs."""
        return tuple(map(_token_key, self.masters))


def origin(url: str) -> str:
    """Return scheme, host and port of a URL, the port only where it is not the usual one (RFC 6454 §6.2)."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    usual = parts.port in (None, _PORTS.get(parts.scheme))
    return f"{parts.scheme}://{host}" + ("" if usual else f":{parts.port}")


def _master(text: str) -> bytes:
    with suppress(ValueError):
        return read_secret(text).raw
    raise ValueError("not a secret of Standard Webhooks: whsec_ and 24 to 64 bytes in base64")


@lru_cache(maxsize=1024)
def _make_key(master: bytes, purpose: bytes, audience: Audience) -> bytes:
    return _derive(master, purpose + msgspec.json.encode(audience))


@lru_cache(maxsize=8)
def _token_key(master: bytes) -> TokenKey:
    return TokenKey.from_seed(_derive(master, TOKEN, length=TokenKey.SEED))


def _derive(key: bytes, info: bytes, length: int = 32) -> bytes:
    return HKDF(algorithm=SHA256(), length=length, salt=None, info=info).derive(key)
