"""The public keys of the issuer of bearer tokens: their URL, and the time for which they are trusted.

The guarded client fetches them. The operator names the issuer's own host, which may be internal; URLs in the issuer's
documents are checked like URLs from any client.
"""

from __future__ import annotations

import asyncio
import logging
import time
import warnings
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from joserfc.errors import JoseError, SecurityWarning
from joserfc.jwk import ECKey, JWKRegistry, OKPKey, RSAKey

from a2a_tasks.agents.security import DISCOVERY
from a2a_tasks.conf import conf
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.outbound import (
    Client,
    ClientLimits,
    Guard,
    OutboundPolicy,
    Unanswered,
    make_tls_context,
)
from a2a_tasks.outbound.networks import LOOPBACK
from a2a_tasks.outbound.policy import PORTS
from a2a_tasks.outbound.web_address import WebAddress, parse
from a2a_tasks.protocol.errors import A2AError, Overloaded
from a2a_tasks.protocol.jsontext import read

__all__ = ["Keys", "PublishedKey", "guard", "read_signing_keys", "read_keys_of"]

logger = logging.getLogger(__name__)
#: Seconds after which keys are fetched anew: while the issuer answers, a withdrawn key is accepted no longer than that.
FRESH_SECONDS = 300.0
#: Seconds for which keys are trusted while the issuer does not answer.
STALE_SECONDS = 3600.0
#: Seconds between two fetches because of an unknown `kid`, which any client can make up.
APART_SECONDS = 30.0
#: Seconds between two fetches from an issuer that does not answer.
AGAIN_SECONDS = 5.0
#: Most seconds of a fetch, for which every bearer may wait.
WAIT_SECONDS = 10.0
#: Limits of one of its two calls: seconds, and bytes of a document.
LIMITS = ClientLimits(connect=5.0, total=10.0, answer=512 * 1024)
#: Most keys of an issuer; further ones are not read.
MAX_KEYS = 100
#: Fewest bits of an RSA key (RFC 7518 §3.3).
MIN_RSA_LENGTH = 2048
OK = 200

_kinds = (RSAKey, ECKey, OKPKey)
_outage = ThrottledLogger(logger, "the keys of A2A_JWT_ISSUER cannot be fetched")


@dataclass(frozen=True, slots=True)
class PublishedKey:
    """A public key, and the one algorithm it is for, if its `alg` names one."""

    kid: str | None
    algorithm: str | None
    key: RSAKey | ECKey | OKPKey

    def signs(self, algorithm: str) -> bool:
        """Return whether the key may belong to a signature of this algorithm. Verification checks its type and curve."""
        kinds = {"E": (ECKey,), "R": (RSAKey,), "P": (RSAKey,)}
        kind = (OKPKey,) if algorithm == "Ed25519" else kinds[algorithm[0]]
        return isinstance(self.key, kind) and self.algorithm in (None, algorithm)


class UnreadableKeys(Exception):
    """A document of the issuer that is malformed, or not the issuer's."""


def read_signing_keys(document: Any) -> list[PublishedKey]:
    """Return the signing keys of a JWK Set (RFC 7517 §5); keys of another type or use are skipped.

    Raises UnreadableKeys.
    """
    keys = document.get("keys") if isinstance(document, Mapping) else None
    if not isinstance(keys, list):
        raise UnreadableKeys("no JWK Set")
    return [found for jwk in keys[:MAX_KEYS] if (found := _public(jwk)) is not None]


def _public(jwk: Any) -> PublishedKey | None:
    if not isinstance(jwk, dict) or jwk.get("use", "sig") != "sig":
        return None
    try:
        with warnings.catch_warnings(category=SecurityWarning, action="ignore"):  # refused below
            key = JWKRegistry.import_key(jwk)
    except (JoseError, ValueError, TypeError, KeyError):
        return None
    if not isinstance(key, _kinds) or key.is_private:
        return None
    raw = key.public_key
    if isinstance(raw, RSAPublicKey) and raw.key_size < MIN_RSA_LENGTH:
        return None
    kid, algorithm = jwk.get("kid"), jwk.get("alg")
    return PublishedKey(kid if isinstance(kid, str) else None, algorithm, key)


class Keys:
    """The issuer's keys, fetched when they are needed, and at intervals that spare the issuer."""

    def __init__(
        self,
        fetch: Callable[[], Awaitable[list[PublishedKey]]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fetch, self._clock = fetch, clock
        self._keys: list[PublishedKey] = []
        self._read = self._tried = float("-inf")
        self._asking: asyncio.Task[None] | None = None
        #: True if the last fetch failed.
        self._away = False

    async def find_keys(self, kid: str | None) -> list[PublishedKey]:
        """Return the keys with that `kid`; all keys for a token without one. Raises Overloaded when there are none."""
        await self._see_to_them()
        found = self._of(kid)
        if not found and self._clock() - self._tried >= APART_SECONDS:
            await self._ask()
            found = self._of(kid)
        return found

    def _of(self, kid: str | None) -> list[PublishedKey]:
        return [key for key in self._keys if kid is None or key.kid == kid]

    async def _see_to_them(self) -> None:
        age, waited = self._clock() - self._read, self._clock() - self._tried
        if age >= STALE_SECONDS:
            if waited >= AGAIN_SECONDS or self._is_asking():
                await self._ask()
            if self._clock() - self._read >= STALE_SECONDS:
                raise Overloaded("The issuer of tokens cannot be reached", retry_after="5")
        elif age >= FRESH_SECONDS:
            self._away &= waited < FRESH_SECONDS  # a fault of long ago says nothing
            if not self._away:
                await self._ask()
            elif waited >= AGAIN_SECONDS:
                self._begin()

    def _is_asking(self) -> bool:
        task = self._asking
        return (
            task is not None and not task.done() and task.get_loop() is asyncio.get_running_loop()
        )

    async def _ask(self) -> None:
        """Wait for the fetch: a new one, or the one that is running."""
        await asyncio.shield(self._begin())

    def _begin(self) -> asyncio.Task[None]:
        if self._asking is None or not self._is_asking():
            self._tried = self._clock()
            self._asking = asyncio.create_task(self._renew())
        return self._asking

    async def _renew(self) -> None:
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                self._keys = await self._fetch()
        except (Unanswered, UnreadableKeys, A2AError, OSError, ValueError) as fault:
            self._away = True
            _outage.warning(fault)
        else:
            self._read, self._away = self._clock(), False


def read_keys_of(issuer: str, jwks_url: str) -> Callable[[], Awaitable[list[PublishedKey]]]:
    """Return the function that fetches the issuer's keys, from their URL or from the one in its discovery document."""

    async def fetch() -> list[PublishedKey]:
        tls = await asyncio.to_thread(make_tls_context, str(conf.JWT_CA_BUNDLE))
        client = Client(guard(issuer, jwks_url), limits=LIMITS, tls=tls)
        try:
            url = jwks_url or await _discover(client, issuer)
            return read_signing_keys(await _document(client, url))
        finally:
            await client.close()

    return fetch


async def _discover(client: Client, issuer: str) -> str:
    """Return the URL of the keys in the discovery document (OIDC Discovery §4.3: it must name the same issuer)."""
    document = await _document(client, issuer.rstrip("/") + DISCOVERY)
    url = document.get("jwks_uri") if isinstance(document, Mapping) else None
    if not isinstance(url, str) or document.get("issuer") != issuer:
        raise UnreadableKeys("the discovery document is another issuer's, or names no keys")
    return url


async def _document(client: Client, url: str) -> Any:
    answer = await client.ask("GET", url, [("accept", "application/json")])
    if answer.status != OK or not answer.whole:
        raise UnreadableKeys(f"{url} answered {answer.status}, or its answer was cut off")
    return read(answer.body)


def guard(issuer: str, jwks_url: str) -> Guard:
    """Return the guard of these URLs. Raises AddressRefused or ValueError for invalid settings."""
    own = [parse(url) for url in (issuer, jwks_url) if url]
    policy = OutboundPolicy.read(
        loopback=any(map(_is_loopback, own)),
        allowed=",".join(address.host for address in own if address.host != "localhost"),
        ports=",".join([PORTS, *(str(address.port) for address in own)]),
        proxy=str(conf.JWT_PROXY),
    )
    made = Guard(policy)
    for address in own:
        made.check(str(address))
    return made


def _is_loopback(address: WebAddress) -> bool:
    if address.literal is None:
        return address.host == "localhost"
    return any(address.literal in network for network in LOOPBACK)
