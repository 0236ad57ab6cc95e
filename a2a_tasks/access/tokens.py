"""Bearer tokens (RFC 6750): JWT of one issuer, verified as RFC 8725 requires.

The host chooses the algorithms, and only asymmetric ones. Keys are those that the issuer publishes, found by `kid`
alone: `jku`, `x5u`, `jwk` and `x5c` in a token are ignored.
"""

from __future__ import annotations

import base64
import functools
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from joserfc import jws
from joserfc.errors import ExpiredTokenError, JoseError
from joserfc.jwt import JWTClaimsRegistry

from a2a_tasks.access.credentials import Identity
from a2a_tasks.access.errors import refuse
from a2a_tasks.access.identity_cache import shorten_principal
from a2a_tasks.access.issuer import Keys, PublishedKey, read_keys_of
from a2a_tasks.agents.security import BEARER, is_scope
from a2a_tasks.caller import Caller, is_tenant
from a2a_tasks.conf import base_url, conf, of_settings
from a2a_tasks.protocol.errors import A2AError
from a2a_tasks.protocol.jsontext import read
from a2a_tasks.store import clock

__all__ = ["ALGORITHMS", "Rules", "algorithms", "audience", "rules", "verify", "verify_token"]

#: Asymmetric algorithms only: a verifier with a shared secret could also sign with it.
ALGORITHMS = frozenset(f"{kind}{bits}" for kind in ("RS", "PS", "ES") for bits in (256, 384, 512))
ALGORITHMS |= {"Ed25519"}
#: Accepted values of `typ`, in lower case (RFC 8725 §3.11); tokens of other types were made for another purpose.
TYPES = {"", "jwt", "at+jwt", "application/jwt", "application/at+jwt"}
#: Most bytes of a token's header, and most levels of nesting in it.
MAX_HEADER_LENGTH, DEEPEST_HEADER = 8192, 8
#: Placeholder for the slug of the agent in A2A_JWT_AUDIENCE.
SLUG = "{agent}"


@dataclass(frozen=True, slots=True)
class Rules:
    """Requirements for tokens."""

    issuer: str
    algorithms: frozenset[str]
    leeway: float = 0.0
    #: The claim with the tenant; empty = none.
    tenant_claim: str = ""


def algorithms() -> frozenset[str]:
    """Return the algorithms in the settings. Raises ValueError for an unsupported one."""
    named = frozenset(name.strip() for name in conf.JWT_ALGORITHMS.split(",") if name.strip())
    if wrong := sorted(named - ALGORITHMS):
        raise ValueError(f"{wrong[0]!r} is none of {', '.join(sorted(ALGORITHMS))}")
    if not named:
        raise ValueError("there must be one at least")
    return named


def audience(agent: str | None) -> str:
    """Return the required audience of tokens for the agent of that slug (None: the host); empty = none is accepted."""
    host = base_url() if conf.PUBLIC_URL else ""
    named = str(conf.JWT_AUDIENCE) or (f"{host}/agents/{SLUG}" if host else "")
    if agent is not None:
        return named.replace(SLUG, agent)
    return host if SLUG in named else named


@of_settings
@functools.cache
def rules() -> Rules:
    """Return the rules in the settings."""
    return Rules(
        str(conf.JWT_ISSUER), algorithms(), conf.JWT_LEEWAY_SECONDS, str(conf.JWT_TENANT_CLAIM)
    )


@of_settings
@functools.cache
def _keys() -> Keys:
    return Keys(read_keys_of(conf.JWT_ISSUER, conf.JWT_JWKS_URL))


async def verify(text: str) -> Identity:
    """Return the identity in a token. Raises WrongCredentials, and Overloaded when the issuer's keys are missing."""
    header = _header(text, rules())
    token = _parse(text, rules())
    return verify_token(
        token, await _keys().find_keys(header.get("kid")), rules(), clock.estimate()
    )


def _header(text: str, rules: Rules) -> Mapping[str, Any]:
    """Return the header, parsed by the host's own JSON reader before any library sees the token; it is unverified.

    Critical parameters (RFC 7515 §4.1.11) are not supported, and neither is an unencoded payload (RFC 7797 §7).
    Raises WrongCredentials.
    """
    segment = text.partition(".")[0]
    padded = segment + "=" * (-len(segment) % 4)
    try:
        header = read(base64.b64decode(padded, b"-_", validate=True), max_depth=DEEPEST_HEADER)
    except (A2AError, ValueError):
        raise refuse("a token that cannot be read") from None
    if not isinstance(header, Mapping) or header.keys() & {"crit", "b64"}:
        raise refuse("a token with a header that is not understood")
    if header.get("alg") not in [*rules.algorithms]:  # a list: `alg` may be unhashable
        raise refuse("a token with an algorithm that is not accepted")
    kid, kind = header.get("kid"), header.get("typ", "")
    if not isinstance(kid, str | None):
        raise refuse("a token whose kid is no text")
    if not isinstance(kind, str) or kind.lower() not in TYPES:
        raise refuse("a token of another type")
    return header


def _registry(allowed: Collection[str]) -> jws.JWSRegistry:
    """Return joserfc's rules for headers: unknown parameters are ignored, unless they are critical."""
    registry = jws.JWSRegistry(algorithms=list(allowed), strict_check_header=False)
    registry.max_header_length = MAX_HEADER_LENGTH
    return registry


def _parse(text: str, rules: Rules) -> jws.CompactSignature:
    """Split a token into its parts, which are unverified. Raises WrongCredentials."""
    try:
        return jws.extract_compact(text.encode("ascii"), registry=_registry(rules.algorithms))
    except (JoseError, ValueError):
        raise refuse("a token that cannot be read") from None


def verify_token(
    token: jws.CompactSignature, keys: list[PublishedKey], rules: Rules, now: float
) -> Identity:
    """Return the identity in the token, if one of these keys signed it and it is valid at `now` (seconds since 1970).

    Raises WrongCredentials.
    """
    algorithm = str(token.headers()["alg"])
    fitting_keys = [key for key in keys if key.signs(algorithm)]
    if len(fitting_keys) != 1:
        raise refuse("a token by a key that is not the issuer's")
    if not _verify_signature(token, fitting_keys[0], algorithm):
        raise refuse("a token with a wrong signature")
    try:
        claims = read(token.payload)
    except A2AError:
        raise refuse("a token whose claims cannot be read") from None
    if not isinstance(claims, Mapping):
        raise refuse("a token without claims")
    return _check_claims(claims, rules, now)


def _verify_signature(token: jws.CompactSignature, by: PublishedKey, algorithm: str) -> bool:
    try:
        return jws.validate_compact(token, by.key, registry=_registry([algorithm]))
    except (JoseError, ValueError):  # another curve, a signature of another length
        return False


def _check_claims(claims: Mapping[str, Any], rules: Rules, now: float) -> Identity:
    registry = JWTClaimsRegistry(
        now=lambda: now,  # type: ignore[arg-type, return-value]  # seconds need not be whole (findings/joserfc_refuses_fractions_of_now.sh)
        leeway=rules.leeway,  # type: ignore[arg-type]
        iss={"essential": True, "value": rules.issuer},
        sub={"essential": True},
        aud={"essential": True},
        exp={"essential": True},
    )
    try:
        registry.validate(dict(claims))
    except ExpiredTokenError:
        raise refuse("a token that has expired", "The token has expired") from None
    except JoseError as flaw:
        raise refuse(f"a token with wrong claims ({flaw})") from None
    subject, audiences = claims["sub"], claims["aud"]
    if not subject.strip() or not subject.isprintable():
        raise refuse("a token without a subject")
    caller = Caller(
        principal=shorten_principal(f"jwt:{rules.issuer} {subject}"),
        tenant=_tenant(claims, rules.tenant_claim),
        scopes=_scopes(claims),
    )
    listed = frozenset([audiences] if isinstance(audiences, str) else audiences)
    return Identity(caller, BEARER, claims["exp"] + rules.leeway, listed, _read_binding(claims))


def _tenant(claims: Mapping[str, Any], claim: str) -> str:
    tenant = claims.get(claim) if claim else ""
    if not isinstance(tenant, str) or not is_tenant(tenant) or (claim and not tenant):
        raise refuse("a token without a tenant")
    return tenant


def _scopes(claims: Mapping[str, Any]) -> frozenset[str]:
    """`scope` is text (RFC 8693 §4.2); `scp`, which some issuers have instead, may be a list."""
    found: list[Any] = []
    for name in ("scope", "scp"):
        claim = claims.get(name)
        found += (
            claim.split() if isinstance(claim, str) else claim if isinstance(claim, list) else []
        )
    return frozenset(scope for scope in found if isinstance(scope, str) and is_scope(scope))


def _read_binding(claims: Mapping[str, Any]) -> str:
    """Return the thumbprint of the certificate that the token is bound to. Bindings of other kinds are refused."""
    binding = claims.get("cnf")
    if binding is None:
        return ""
    found = binding.get("x5t#S256") if isinstance(binding, Mapping) and len(binding) == 1 else None
    if not isinstance(found, str) or not found:
        raise refuse("a token bound to something that cannot be verified here")
    return found
