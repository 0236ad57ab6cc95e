"""Bearer tokens (RFC 6750): JWT of one issuer, verified as RFC 8725 says.

Algorithms are ours to choose, and asymmetric only; keys are the issuer's published ones, found by `kid` and by
nothing else a token says (`jku`, `x5u`, `jwk`, `x5c` are not looked at).
"""

from __future__ import annotations

import base64
import functools
import math
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from django.core.signals import setting_changed
from django.dispatch import receiver
from joserfc import jws
from joserfc.errors import JoseError

from a2a_tasks.access.issuer import Keys, Published, read_keys_of
from a2a_tasks.access.refusals import refused
from a2a_tasks.access.vouched import Vouched, fitting
from a2a_tasks.agents.security import BEARER, is_scope
from a2a_tasks.caller import Caller, is_tenant
from a2a_tasks.conf import conf
from a2a_tasks.protocol.errors import A2AError
from a2a_tasks.protocol.jsontext import read

__all__ = ["ALGORITHMS", "Rules", "algorithms", "audience", "rules", "verify", "vouched_by"]

#: Public keys only: whoever verifies with a shared secret could also sign with it.
ALGORITHMS = frozenset(f"{kind}{bits}" for kind in ("RS", "PS", "ES") for bits in (256, 384, 512))
ALGORITHMS |= {"Ed25519"}
#: What a token may be called (RFC 8725 §3.11); anything else was made for another purpose.
TYPES = {"", "jwt", "at+jwt", "application/jwt", "application/at+jwt"}
#: Bytes of a token's header, and levels of what is in it.
LONGEST_HEADER, DEEPEST_HEADER = 8192, 8
#: Where `{agent}` stands in A2A_JWT_AUDIENCE.
SLUG = "{agent}"


@dataclass(frozen=True, slots=True)
class Rules:
    """What is asked of tokens."""

    issuer: str
    algorithms: frozenset[str]
    leeway: float = 0.0
    #: The claim with the tenant; empty = none.
    tenant_claim: str = ""


def algorithms() -> frozenset[str]:
    """The algorithms the settings name. Raises ValueError for one that cannot be used."""
    named = frozenset(name.strip() for name in conf.JWT_ALGORITHMS.split(",") if name.strip())
    if wrong := sorted(named - ALGORITHMS):
        raise ValueError(f"{wrong[0]!r} is none of {', '.join(sorted(ALGORITHMS))}")
    if not named:
        raise ValueError("there must be one at least")
    return named


def audience(agent: str | None) -> str:
    """What a token for the agent of that slug must be made out to (None: for the host itself); empty = nothing would do."""
    host = str(conf.PUBLIC_URL).rstrip("/")
    named = str(conf.JWT_AUDIENCE) or (f"{host}/agents/{SLUG}" if host else "")
    if agent is not None:
        return named.replace(SLUG, agent)
    return host if SLUG in named else named


@functools.cache
def rules() -> Rules:
    """The rules that the settings say."""
    return Rules(
        str(conf.JWT_ISSUER), algorithms(), conf.JWT_LEEWAY_SECONDS, str(conf.JWT_TENANT_CLAIM)
    )


@functools.cache
def _keys() -> Keys:
    return Keys(read_keys_of(conf.JWT_ISSUER, conf.JWT_JWKS_URL))


@receiver(setting_changed)
def _forget(**_: Any) -> None:
    rules.cache_clear()
    _keys.cache_clear()


async def verify(text: str) -> Vouched:
    """Who shows this token. Raises WrongCredentials, and Overloaded when the issuer's keys cannot be had."""
    header = _header(text, rules())
    token = _opened(text, rules())
    return vouched_by(token, await _keys().named(header.get("kid")), rules(), time.time())


def _header(text: str, asked: Rules) -> Mapping[str, Any]:
    """The header, read by the host's own door before any library sees the token; nothing of it is believed yet.

    Whatever is critical (RFC 7515 §4.1.11) is unknown here, an unencoded payload too (RFC 7797 §7). Raises WrongCredentials.
    """
    segment = text.partition(".")[0]
    padded = segment + "=" * (-len(segment) % 4)
    try:
        header = read(base64.b64decode(padded, b"-_", validate=True), max_depth=DEEPEST_HEADER)
    except (A2AError, ValueError):
        raise refused("a token that cannot be read") from None
    if not isinstance(header, Mapping) or header.keys() & {"crit", "b64"}:
        raise refused("a token with a header that is not understood")
    if header.get("alg") not in [*asked.algorithms]:  # a list: what it says may be of any type
        raise refused("a token with an algorithm that is not accepted")
    kid, kind = header.get("kid"), header.get("typ", "")
    if not isinstance(kid, str | None):
        raise refused("a token whose kid is no text")
    if not isinstance(kind, str) or kind.lower() not in TYPES:
        raise refused("a token of another type")
    return header


def _registry(allowed: Collection[str]) -> jws.JWSRegistry:
    """joserfc's word for what may be in a header: what it does not know is passed over, unless it is critical."""
    registry = jws.JWSRegistry(algorithms=list(allowed), strict_check_header=False)
    registry.max_header_length = LONGEST_HEADER
    return registry


def _opened(text: str, asked: Rules) -> jws.CompactSignature:
    """A token taken apart; nothing of it is believed yet. Raises WrongCredentials."""
    try:
        return jws.extract_compact(text.encode("ascii"), registry=_registry(asked.algorithms))
    except (JoseError, ValueError):
        raise refused("a token that cannot be read") from None


def vouched_by(
    token: jws.CompactSignature, keys: list[Published], asked: Rules, now: float
) -> Vouched:
    """What the token says, if one of these keys signed it and it is for now (seconds since 1970). Raises WrongCredentials."""
    algorithm = str(token.headers()["alg"])
    fitting_keys = [key for key in keys if key.signs(algorithm)]
    if len(fitting_keys) != 1:
        raise refused("a token by a key that is not the issuer's")
    if not _signed(token, fitting_keys[0], algorithm):
        raise refused("a token with a wrong signature")
    try:
        claims = read(token.payload)
    except A2AError:
        raise refused("a token whose claims cannot be read") from None
    if not isinstance(claims, Mapping):
        raise refused("a token without claims")
    return _believed(claims, asked, now)


def _signed(token: jws.CompactSignature, by: Published, algorithm: str) -> bool:
    try:
        return jws.validate_compact(token, by.key, registry=_registry([algorithm]))
    except (JoseError, ValueError):  # another curve, a signature of another length
        return False


def _believed(claims: Mapping[str, Any], asked: Rules, now: float) -> Vouched:
    if claims.get("iss") != asked.issuer:
        raise refused("a token of another issuer")
    until = _time(claims, "exp") + asked.leeway
    if until <= now:
        raise refused("a token that has expired", "The token has expired")
    if any(_time(claims, name) > now + asked.leeway for name in ("nbf", "iat") if name in claims):
        raise refused("a token that is not valid yet")
    caller = Caller(
        principal=fitting(f"jwt:{asked.issuer} {_subject(claims)}"),
        tenant=_tenant(claims, asked.tenant_claim),
        scopes=_scopes(claims),
    )
    return Vouched(caller, BEARER, until, _audiences(claims), _bound(claims))


def _time(claims: Mapping[str, Any], name: str) -> float:
    moment = claims.get(name)
    if isinstance(moment, bool) or not isinstance(moment, int | float) or not math.isfinite(moment):
        raise refused(f"a token without {name}, or with one that is no time")
    return float(moment)


def _subject(claims: Mapping[str, Any]) -> str:
    subject = claims.get("sub")
    if not isinstance(subject, str) or not subject.strip() or not subject.isprintable():
        raise refused("a token without a subject")
    return subject


def _tenant(claims: Mapping[str, Any], claim: str) -> str:
    tenant = claims.get(claim) if claim else ""
    if not isinstance(tenant, str) or not is_tenant(tenant) or (claim and not tenant):
        raise refused("a token without a tenant")
    return tenant


def _scopes(claims: Mapping[str, Any]) -> frozenset[str]:
    """`scope` is text (RFC 8693 §4.2); `scp`, which some issuers have instead, may be a list."""
    found: list[Any] = []
    for name in ("scope", "scp"):
        said = claims.get(name)
        found += said.split() if isinstance(said, str) else said if isinstance(said, list) else []
    return frozenset(scope for scope in found if isinstance(scope, str) and is_scope(scope))


def _audiences(claims: Mapping[str, Any]) -> frozenset[str]:
    said = claims.get("aud")
    listed = said if isinstance(said, list) else [said]
    if not all(isinstance(one, str) for one in listed):
        raise refused("a token without an audience")
    return frozenset(listed)


def _bound(claims: Mapping[str, Any]) -> str:
    """The certificate the token is bound to. A binding of another kind cannot be looked after here."""
    binding = claims.get("cnf")
    if binding is None:
        return ""
    found = binding.get("x5t#S256") if isinstance(binding, Mapping) and len(binding) == 1 else None
    if not isinstance(found, str) or not found:
        raise refused("a token bound to something that cannot be verified here")
    return found
