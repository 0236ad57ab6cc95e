"""The public keys of the issuer of bearer tokens: where they are, and how long they are believed.

They are asked for by the guarded client. The issuer's own host is the operator's word and may be inside; where its
documents point is judged like any stranger's URL.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import ssl
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
from a2a_tasks.outages import Outage
from a2a_tasks.outbound import Client, Guard, Limits, Policy, Unanswered, trusting
from a2a_tasks.outbound.networks import LOOPBACK
from a2a_tasks.outbound.policy import PORTS
from a2a_tasks.outbound.web_address import WebAddress, parse
from a2a_tasks.protocol.errors import A2AError, Overloaded
from a2a_tasks.protocol.jsontext import read

__all__ = ["Keys", "Published", "guard", "published", "read_keys_of"]

logger = logging.getLogger(__name__)
#: Seconds after which keys are asked for anew, beside the requests: a key that was withdrawn opens no longer than that.
FRESH_SECONDS = 300.0
#: Seconds for which keys are believed when the issuer does not answer.
STALE_SECONDS = 3600.0
#: Seconds between two questions because of a `kid` nobody knows: anybody can make one up.
APART_SECONDS = 30.0
#: Seconds between two questions to an issuer that does not answer.
AGAIN_SECONDS = 5.0
#: What asking may cost: seconds, and bytes of a document.
LIMITS = Limits(connect=5.0, total=10.0, answer=512 * 1024)
#: Keys of an issuer beyond this are not read.
MOST_KEYS = 100
#: Bits below which an RSA key is no key (RFC 7518 §3.3).
SHORTEST_RSA = 2048
OK = 200

_kinds = (RSAKey, ECKey, OKPKey)
_outage = Outage(logger, "the keys of A2A_JWT_ISSUER cannot be had")


@dataclass(frozen=True, slots=True)
class Published:
    """A public key, and the one algorithm it is for, if its owner says so."""

    kid: str | None
    algorithm: str | None
    key: RSAKey | ECKey | OKPKey

    def signs(self, algorithm: str) -> bool:
        """May what this algorithm signed be the key's? Its kind and curve are looked at by whoever verifies."""
        kinds = {"E": (ECKey,), "R": (RSAKey,), "P": (RSAKey,)}
        kind = (OKPKey,) if algorithm == "Ed25519" else kinds[algorithm[0]]
        return isinstance(self.key, kind) and self.algorithm in (None, algorithm)


class Unreadable(Exception):
    """The issuer's document is not what it should be."""


def published(document: Any) -> list[Published]:
    """The keys of a JWK Set (RFC 7517 §5) that sign; those of another kind or use are passed over. Raises Unreadable."""
    keys = document.get("keys") if isinstance(document, Mapping) else None
    if not isinstance(keys, list):
        raise Unreadable("no JWK Set")
    return [found for jwk in keys[:MOST_KEYS] if (found := _public(jwk)) is not None]


def _public(jwk: Any) -> Published | None:
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
    if isinstance(raw, RSAPublicKey) and raw.key_size < SHORTEST_RSA:
        return None
    kid, algorithm = jwk.get("kid"), jwk.get("alg")
    return Published(kid if isinstance(kid, str) else None, algorithm, key)


class Keys:
    """The issuer's keys, asked for when they are needed and not more often than is good for the issuer."""

    def __init__(
        self,
        fetch: Callable[[], Awaitable[list[Published]]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fetch, self._clock = fetch, clock
        self._keys: list[Published] = []
        self._read = self._tried = float("-inf")
        self._asking: asyncio.Task[None] | None = None

    async def named(self, kid: str | None) -> list[Published]:
        """The keys of that name; all of them for a token that names none. Raises Overloaded when there are none to ask for."""
        await self._see_to_them()
        found = self._of(kid)
        if not found and self._clock() - self._tried >= APART_SECONDS:
            await self._ask()
            found = self._of(kid)
        return found

    def _of(self, kid: str | None) -> list[Published]:
        return [key for key in self._keys if kid is None or key.kid == kid]

    async def _see_to_them(self) -> None:
        age, waited = self._clock() - self._read, self._clock() - self._tried
        if age >= STALE_SECONDS:
            if waited >= AGAIN_SECONDS or self._is_asking():
                await self._ask()
            if self._clock() - self._read >= STALE_SECONDS:
                raise Overloaded("The issuer of tokens cannot be reached", retry_after="5")
        elif age >= FRESH_SECONDS and waited >= AGAIN_SECONDS:
            self._begin()

    def _is_asking(self) -> bool:
        task = self._asking
        return (
            task is not None and not task.done() and task.get_loop() is asyncio.get_running_loop()
        )

    async def _ask(self) -> None:
        """Wait for the answer, ours or that of somebody who asked before us."""
        await asyncio.shield(self._begin())

    def _begin(self) -> asyncio.Task[None]:
        if self._asking is None or not self._is_asking():
            self._tried = self._clock()
            self._asking = asyncio.create_task(self._renew())
        return self._asking

    async def _renew(self) -> None:
        try:
            self._keys = await self._fetch()
        except (Unanswered, Unreadable, A2AError, OSError, ValueError) as fault:
            _outage.count(fault)
        else:
            self._read = self._clock()


def read_keys_of(issuer: str, jwks_url: str) -> Callable[[], Awaitable[list[Published]]]:
    """What asks the issuer for its keys: at their URL, or at the one its discovery document names."""

    async def fetch() -> list[Published]:
        tls = await asyncio.to_thread(_trust, str(conf.JWT_CA_BUNDLE))
        client = Client(guard(issuer, jwks_url), limits=LIMITS, tls=tls)
        try:
            url = jwks_url or await _discovered(client, issuer)
            return published(await _document(client, url))
        finally:
            await client.close()

    return fetch


@functools.lru_cache(maxsize=2)
def _trust(bundle: str) -> ssl.SSLContext:
    return trusting(bundle)


async def _discovered(client: Client, issuer: str) -> str:
    """Where the provider says its keys are (OIDC Discovery §4.3: it must say the very issuer we asked)."""
    said = await _document(client, issuer.rstrip("/") + DISCOVERY)
    url = said.get("jwks_uri") if isinstance(said, Mapping) else None
    if not isinstance(url, str) or said.get("issuer") != issuer:
        raise Unreadable("the discovery document is another issuer's, or names no keys")
    return url


async def _document(client: Client, url: str) -> Any:
    answer = await client.ask("GET", url, [("accept", "application/json")])
    if answer.status != OK or not answer.whole:
        raise Unreadable(f"{url} answered {answer.status}, or not to its end")
    return read(answer.body)


def guard(issuer: str, jwks_url: str) -> Guard:
    """Which URLs may be asked. Raises AddressRefused, ValueError for settings that cannot be."""
    own = [parse(url) for url in (issuer, jwks_url) if url]
    policy = Policy.read(
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
