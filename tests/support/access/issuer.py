"""A small issuer of tokens on a real socket: discovery, keys, and whatever tokens a test wants of it."""

from __future__ import annotations

import asyncio
import json
import time
import warnings
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from joserfc import jws
from joserfc.errors import SecurityWarning
from joserfc.jwk import ECKey, KeySet, OctKey, OKPKey, RSAKey

from a2a_tasks.agents.security import DISCOVERY
from tests.support.push import receivers

__all__ = ["AUDIENCE", "Issuer", "Key", "issuing", "key", "signed"]

Key = RSAKey | ECKey | OKPKey
AUDIENCE = "https://agents.example.com"
KINDS: Mapping[str, tuple[str, Any]] = {
    "RS256": ("RSA", 2048),
    "PS256": ("RSA", 2048),
    "ES256": ("EC", "P-256"),
    "Ed25519": ("OKP", "Ed25519"),
    "weak": ("RSA", 1024),
}


@cache
def key(algorithm: str, kid: str = "one") -> Key:
    """A key pair for the algorithm, always the same in a run: RSA keys take their time."""
    kind, size = KINDS[algorithm]
    makers: dict[str, Any] = {"RSA": RSAKey, "EC": ECKey, "OKP": OKPKey}
    with warnings.catch_warnings(category=SecurityWarning, action="ignore"):  # the weak one
        made: Key = makers[kind].generate_key(size, {"kid": kid, "use": "sig"})
    return made


def signed(header: Mapping[str, Any], claims: Mapping[str, Any], by: Key | OctKey) -> str:
    """A token, however odd."""
    registry = jws.JWSRegistry(algorithms=[str(header["alg"])], strict_check_header=False)
    registry.max_header_length = 8192
    return jws.serialize_compact(dict(header), json.dumps(claims), by, registry=registry)


class Issuer:
    """The issuer, and the tokens it makes."""

    def __init__(self) -> None:
        self.url = ""
        self.keys: list[Key] = [key("RS256")]
        #: The paths it was asked for.
        self.asked: list[str] = []
        #: The status of its answers.
        self.status = "200 OK"
        #: Does it leave requests without an answer?
        self.hanging = False
        #: Members of the discovery document that are another's.
        self.discovery: dict[str, Any] = {}

    @property
    def jwks(self) -> str:
        """Where its keys are."""
        return f"{self.url}/keys"

    @property
    def asked_for_keys(self) -> int:
        """How often."""
        return self.asked.count("/keys")

    def claims(self, **changed: Any) -> dict[str, Any]:
        """What a good token says; a claim given as None is left out."""
        now = int(time.time())
        good = {
            "iss": self.url,
            "sub": "alice",
            "aud": f"{AUDIENCE}/agents/demo",
            "iat": now,
            "nbf": now,
            "exp": now + 300,
        }
        return {name: value for name, value in {**good, **changed}.items() if value is not None}

    def token(
        self,
        by: Key | None = None,
        header: Mapping[str, Any] | None = None,
        alg: str = "RS256",
        **changed: Any,
    ) -> str:
        """A token, good but for what is changed."""
        by = by or self.keys[0]
        return signed(
            {"alg": alg, "typ": "JWT", "kid": by.kid, **(header or {})}, self.claims(**changed), by
        )

    def document(self, path: str) -> Any:
        """What is at a path."""
        if path == "/keys":
            return KeySet([*self.keys]).as_dict(private=False)
        return {"issuer": self.url, "jwks_uri": self.jwks, **self.discovery}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            path = head.split()[1]
            self.asked.append(path)
            assert path in {"/keys", DISCOVERY}, path
            if self.hanging:
                continue
            body = json.dumps(self.document(path)).encode()
            writer.write(receivers.answer(self.status, body=body))
            await writer.drain()


@asynccontextmanager
async def issuing() -> AsyncIterator[Issuer]:
    """An issuer, for a while."""
    issuer = Issuer()
    async with receivers.serving(issuer.serve) as port:
        issuer.url = f"http://127.0.0.1:{port}"
        yield issuer
