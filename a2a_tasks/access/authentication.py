"""Authentication of a request's credentials to a Caller, for every route of every binding. Deny by default.

Verified credentials are cached for A2A_CREDENTIAL_SECONDS under a keyed hash, so that most requests need no database
query, no signature check and no password hash. A revocation takes effect after at most that time.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

from django.core.signals import setting_changed
from django.dispatch import receiver

from a2a_tasks.access import (
    api_keys,
    auth_failures,
    certificates,
    grants,
    passwords,
    rate_limits,
    switch_cache,
    tokens,
)
from a2a_tasks.access.credentials import (
    Credentials,
    Identity,
    ShownCredential,
    certificate_of,
    read_credential,
)
from a2a_tasks.access.errors import again, refuse
from a2a_tasks.access.identity_cache import TtlCache, digest
from a2a_tasks.agents import registry
from a2a_tasks.agents.agent import Agent
from a2a_tasks.agents.registry import has_listed
from a2a_tasks.agents.security import (
    API_KEY,
    BASIC,
    BEARER,
    MUTUAL_TLS,
    allows_anonymous,
    is_listed,
    list_accepted,
    open_to_anybody,
)
from a2a_tasks.caller import ANONYMOUS, Caller
from a2a_tasks.conf import conf
from a2a_tasks.models import GrantRight
from a2a_tasks.protocol.errors import (
    Forbidden,
    InsufficientScope,
    Overloaded,
    Unauthenticated,
    WrongCredentials,
)
from a2a_tasks.store import clock

__all__ = [
    "Credentials",
    "allows_anonymous",
    "catalogue",
    "find_agent",
    "identify",
    "list_usable",
    "recognize",
]

_P = ParamSpec("_P")
_T = TypeVar("_T")

#: The function that verifies the credentials of each scheme; for passwords it also takes the address of the client.
#: A scheme has its name in `SCHEMES` and its setting in `list_enabled`, both in `a2a_tasks/agents/security.py`.
VERIFIERS: Mapping[str, Callable[[ShownCredential], Awaitable[Identity]]] = {
    BEARER: lambda credential: tokens.verify(credential.text),
    API_KEY: lambda credential: api_keys.verify(credential.text),
    BASIC: lambda credential: passwords.verify(credential.text, credential.address),
    MUTUAL_TLS: lambda credential: certificates.verify(credential.text),
}
#: Cached credentials: valid ones and wrong ones, apart, so that wrong ones cannot evict valid ones.
MAX_VALID, MAX_WRONG = 20_000, 2_000
#: Credentials that are verified at once; further ones get 503, so that forged ones cannot fill the database's queue.
MAX_ASKED = 200

_valid: TtlCache[Identity] = TtlCache(MAX_VALID)
_wrong: TtlCache[tuple[str, str, str]] = TtlCache(MAX_WRONG)
_asking: dict[bytes, asyncio.Task[Identity]] = {}


@receiver(setting_changed)
def forget(**_: Any) -> None:
    """Clear the caches, so that all credentials are verified anew."""
    _valid.clear()
    _wrong.clear()


def _count_failures(
    look: Callable[Concatenate[Credentials, _P], Awaitable[_T]],
) -> Callable[Concatenate[Credentials, _P], Awaitable[_T]]:
    """Record refused requests in the audit log, and count wrong credentials for their address.

    The limit for an address is `A2A_RATE_WRONG_CREDENTIALS`.
    """

    @functools.wraps(look)
    async def count_failure(credentials: Credentials, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return await look(credentials, *args, **kwargs)
        except WrongCredentials as fault:
            auth_failures.record_unauthenticated(
                credentials.address, _slug(*args), fault.why, fault.principal
            )
            if not fault.genuine:
                await rate_limits.count_wrong(credentials.address)
            raise
        except Unauthenticated:
            auth_failures.record_unauthenticated(
                credentials.address, _slug(*args), auth_failures.NO_CREDENTIALS
            )
            raise

    return count_failure


def _slug(agent: object = None) -> str:
    return agent.slug if isinstance(agent, Agent) else str(agent or "")


@_count_failures
async def identify(credentials: Credentials, agent: Agent | None = None) -> Caller:
    """Return the caller of the credentials, if it may use the agent (None: the host's own surfaces).

    Wrong credentials are refused also where anonymous access is allowed: a client that sends some wants to be known.
    Raises Unauthenticated, WrongCredentials, InsufficientScope, Forbidden, RateLimited, Overloaded.
    """
    identity = await _recognize(credentials)
    if identity is not None:
        _admit(identity, credentials, agent)
    elif not open_to_anybody(agent):
        raise Unauthenticated
    caller = ANONYMOUS if identity is None else identity.caller
    if agent is not None and is_listed(agent):
        await _let_use(caller, agent, credentials.address)
    rate = None if identity is None else identity.rate
    if rates := rate_limits.rates_for(caller, agent, credentials.address, rate):
        await rate_limits.take(rates)
    return caller


@_count_failures
async def recognize(credentials: Credentials) -> None:
    """Verify the credentials of a request whose body names the agent, before the body is read; `identify` counts it.

    Raises Unauthenticated, WrongCredentials, RateLimited, Overloaded.
    """
    identity = await _recognize(credentials)
    if identity is None and not allows_anonymous():
        raise Unauthenticated
    caller, rate = (identity.caller, identity.rate) if identity else (ANONYMOUS, None)
    await rate_limits.look(rate_limits.rates_for(caller, None, credentials.address, rate))


async def find_agent(credentials: Credentials, slug: str) -> Agent | None:
    """Return the agent of that slug, if it exists and the caller of these credentials may see it (`A2A_GRANTS`).

    If any agent is listed, the check for a missing agent takes the same steps as for a listed one, so that neither its
    duration nor its errors reveal which agents exist. Raises WrongCredentials, Overloaded.
    """
    await switch_cache.fresh()
    agent = registry.find(slug)
    if not (has_listed() if agent is None else is_listed(agent)):
        return agent
    return agent if await _may_see(credentials, slug) else None


@_count_failures
async def _may_see(credentials: Credentials, slug: str) -> bool:
    identity = await _recognize(credentials)
    if identity is not None:
        _check_use(identity, credentials, slug)
    caller = ANONYMOUS if identity is None else identity.caller
    return GrantRight.SEE in await grants.rights(caller, slug)


@_count_failures
async def catalogue(credentials: Credentials) -> list[Agent]:
    """Return the agents that the caller of these credentials may see. Raises WrongCredentials, Overloaded."""
    await switch_cache.fresh()
    if not has_listed():
        return registry.agents()
    identity = await _recognize(credentials)
    if identity is not None:
        _check_binding(identity, credentials)
    return [agent for agent in registry.agents() if await _shows(agent, identity)]


async def _shows(agent: Agent, identity: Identity | None) -> bool:
    if not is_listed(agent):
        return True
    accepted = identity is not None and (_is_for(agent.slug, identity) or _is_for(None, identity))
    caller = identity.caller if identity is not None and accepted else ANONYMOUS
    return GrantRight.SEE in await grants.rights(caller, agent.slug)


@_count_failures
async def list_usable(credentials: Credentials) -> list[Agent]:
    """Return the agents that the caller of these credentials may use. It is not counted in the caller's rate.

    Raises Unauthenticated if a caller without credentials may use none, WrongCredentials, Overloaded.
    """
    await switch_cache.fresh()
    identity = await _recognize(credentials)
    if identity is not None:
        _check_binding(identity, credentials)
    agents = [agent for agent in registry.agents() if await _admits(agent, identity)]
    if identity is None and not agents:
        raise Unauthenticated
    return agents


async def _admits(agent: Agent, identity: Identity | None) -> bool:
    """Return whether `identify` would admit the caller to the agent."""
    caller = ANONYMOUS if identity is None else identity.caller
    if identity is None:
        admitted = open_to_anybody(agent)
    else:
        fits = identity.scheme in list_accepted(agent) and _is_for(agent.slug, identity)
        admitted = fits and caller.scopes.issuperset(agent.scopes)
    if not admitted or not is_listed(agent):
        return admitted
    return GrantRight.USE in await grants.rights(caller, agent.slug)


async def _let_use(caller: Caller, agent: Agent, address: str) -> None:
    """Raise Forbidden, or Unauthenticated for an anonymous caller, unless the caller may use the agent."""
    if GrantRight.USE in await grants.rights(caller, agent.slug):
        return
    if caller.anonymous:
        raise Unauthenticated
    auth_failures.record_forbidden(caller, agent, "may see it, but not use it", address=address)
    raise Forbidden("The caller may see this agent, but not use it")


async def _recognize(credentials: Credentials) -> Identity | None:
    """Identify the caller by its credentials; None = the request has none. Raises WrongCredentials, Overloaded."""
    if credentials.identity is not None:
        return credentials.identity
    credential = read_credential(credentials)
    if credential is None:
        return None
    key = digest(credential)
    identity = _valid.get(key)
    if identity is None:
        await rate_limits.may_try(credentials.address)
        identity = await _verify_once(credential, key)
    credentials.identity = identity
    return identity


def _admit(identity: Identity, credentials: Credentials, agent: Agent | None) -> None:
    """Check that the agent accepts the scheme, the audience and the scopes of these credentials."""
    if identity.scheme not in list_accepted(agent):
        raise _refuse_misplaced(f"{identity.scheme} is not accepted by this agent")
    _check_use(identity, credentials, agent.slug if agent else None)
    lacking = (
        [scope for scope in agent.scopes if scope not in identity.caller.scopes] if agent else ()
    )
    if lacking:
        why = f"lacks the scope {' '.join(lacking)}"
        auth_failures.record_forbidden(identity.caller, agent, why, address=credentials.address)
        raise InsufficientScope.for_scopes(lacking)


def _check_use(identity: Identity, credentials: Credentials, slug: str | None) -> None:
    """Refuse credentials for another audience, and those used without the certificate they are bound to."""
    if not _is_for(slug, identity):
        raise _refuse_misplaced("a token for another audience")
    _check_binding(identity, credentials)


def _check_binding(identity: Identity, credentials: Credentials) -> None:
    if not identity.bound:
        return
    certificate = certificate_of(credentials)
    if certificate is None or identity.bound != certificates.thumbprint(certificate):
        raise _refuse_misplaced("a token without the certificate it is bound to")


def _refuse_misplaced(why: str) -> WrongCredentials:
    """Return the error for genuine credentials that are not valid here."""
    fault = refuse(why)
    fault.genuine = True
    return fault


def _is_for(slug: str | None, identity: Identity) -> bool:
    """Return whether the credentials were issued for this agent (None: the host itself), or for no certain audience."""
    if identity.audiences is None:
        return True
    wanted = tokens.audience(slug)
    return bool(wanted) and wanted in identity.audiences


async def _verify_once(credential: ShownCredential, key: bytes) -> Identity:
    """Verify a credential, once for all requests that show it at the same time."""
    if (before := _wrong.get(key)) is not None:
        raise again(*before)
    task = _asking.get(key)
    if task is None or task.get_loop() is not asyncio.get_running_loop():
        if len(_asking) >= MAX_ASKED:
            raise Overloaded("Too many credentials are waiting to be verified", retry_after="1")
        task = _asking[key] = asyncio.create_task(_verify(credential, key))
        task.add_done_callback(lambda done: _on_verified(key, done))
    return await asyncio.shield(task)


def _on_verified(key: bytes, task: asyncio.Task[Identity]) -> None:
    if _asking.get(key) is task:
        del _asking[key]
    if not task.cancelled():
        task.exception()  # mark it as retrieved: all waiting requests may have been cancelled


async def _verify(credential: ShownCredential, key: bytes) -> Identity:
    try:
        if not credential.scheme:
            raise refuse("credentials of no supported scheme")
        identity = await VERIFIERS[credential.scheme](credential)
    except WrongCredentials as fault:
        _wrong.keep(key, (fault.why, fault.message, fault.principal), conf.CREDENTIAL_SECONDS)
        raise
    _valid.keep(key, identity, min(conf.CREDENTIAL_SECONDS, identity.until - clock.estimate()))
    return identity
