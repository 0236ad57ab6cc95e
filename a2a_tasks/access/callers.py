"""From a request's credentials to a Caller: the one door of every route of every binding. Deny by default.

What was verified is remembered for A2A_CREDENTIAL_SECONDS, under a keyed hash, so that most requests cost no look at
the database, no signature and no password; revoking takes effect after as long.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

from django.core.signals import setting_changed
from django.dispatch import receiver

from a2a_tasks.access import (
    api_keys,
    certificates,
    denials,
    grants,
    metering,
    passwords,
    switched,
    tokens,
)
from a2a_tasks.access.credentials import Credentials, Shown, certificate_of, shown
from a2a_tasks.access.refusals import again, refused
from a2a_tasks.access.vouched import Memory, Vouched, digest
from a2a_tasks.agents import registry
from a2a_tasks.agents.agent import Agent
from a2a_tasks.agents.registry import any_listed
from a2a_tasks.agents.security import (
    API_KEY,
    BASIC,
    BEARER,
    MUTUAL_TLS,
    accepted,
    anonymous_allowed,
    listed,
    open_to_anybody,
)
from a2a_tasks.caller import ANONYMOUS, Caller
from a2a_tasks.conf import conf
from a2a_tasks.models import Right
from a2a_tasks.protocol.errors import (
    Forbidden,
    InsufficientScope,
    Overloaded,
    Unauthenticated,
    WrongCredentials,
)

__all__ = ["Credentials", "anonymous_allowed", "catalogue", "existing", "identify"]

#: What each scheme makes of a credential's text; of names and passwords, with the address they are from.
_P = ParamSpec("_P")
_T = TypeVar("_T")

VERIFIERS: Mapping[str, Callable[[Shown], Awaitable[Vouched]]] = {
    BEARER: lambda credential: tokens.verify(credential.text),
    API_KEY: lambda credential: api_keys.verify(credential.text),
    BASIC: lambda credential: passwords.verify(credential.text, credential.address),
    MUTUAL_TLS: lambda credential: certificates.verify(credential.text),
}
#: Credentials remembered: good ones, and wrong ones, which cannot push out the good.
MOST_KNOWN, MOST_WRONG = 20_000, 2_000
#: Credentials that are looked at at once; the next gets 503, so that made-up ones are no way to fill the database's line.
MOST_ASKED = 200

_known: Memory[Vouched] = Memory(MOST_KNOWN)
_wrong: Memory[tuple[str, str, str]] = Memory(MOST_WRONG)
_asking: dict[bytes, asyncio.Task[Vouched]] = {}


@receiver(setting_changed)
def forget(**_: Any) -> None:
    """Look at all credentials anew."""
    _known.clear()
    _wrong.clear()


def _counting(
    look: Callable[Concatenate[Credentials, _P], Awaitable[_T]],
) -> Callable[Concatenate[Credentials, _P], Awaitable[_T]]:
    """Who is not let in is in the audit log; what is wrong counts for its address (`A2A_RATE_WRONG_CREDENTIALS`)."""

    @functools.wraps(look)
    async def counting(credentials: Credentials, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return await look(credentials, *args, **kwargs)
        except WrongCredentials as fault:
            denials.refused(credentials.address, _slug(*args), fault.why, fault.whose)
            if not fault.genuine:
                await metering.count_wrong(credentials.address)
            raise
        except Unauthenticated:
            denials.refused(credentials.address, _slug(*args), "no credentials")
            raise

    return counting


def _slug(agent: object = None) -> str:
    return agent.slug if isinstance(agent, Agent) else str(agent or "")


@_counting
async def identify(credentials: Credentials, agent: Agent | None = None) -> Caller:
    """The caller that the credentials vouch for, if it may use the agent (None: the host's own surfaces).

    Wrong credentials are refused also where none would do: whoever shows some wants to be known.
    Raises Unauthenticated, WrongCredentials, InsufficientScope, Forbidden, RateLimited, Overloaded.
    """
    vouched = await _recognised(credentials)
    if vouched is not None:
        _admit(vouched, credentials, agent)
    elif not open_to_anybody(agent):
        raise Unauthenticated
    caller = ANONYMOUS if vouched is None else vouched.caller
    if agent is not None and listed(agent):
        await _let_use(caller, agent, credentials.address)
    rate = None if vouched is None else vouched.rate
    if rates := metering.rates_for(caller, agent, credentials.address, rate):
        await metering.take(rates)
    return caller


@_counting
async def existing(credentials: Credentials, slug: str) -> Agent | None:
    """The agent of that slug, if there is one for whoever shows these credentials (`A2A_GRANTS`).

    Where some are listed, one that is missing is looked for in the same way: it takes as long, and fails by the same.
    Raises WrongCredentials, Overloaded.
    """
    await switched.fresh()
    agent = registry.find(slug)
    if not (any_listed() if agent is None else listed(agent)):
        return agent
    vouched = await _recognised(credentials)
    if vouched is not None:
        _check_use(vouched, credentials, slug)
    caller = ANONYMOUS if vouched is None else vouched.caller
    return agent if Right.SEE in await grants.rights(caller, slug) else None


@_counting
async def catalogue(credentials: Credentials) -> list[Agent]:
    """The agents there are for whoever shows these credentials. Raises WrongCredentials, Overloaded."""
    await switched.fresh()
    if not any_listed():
        return registry.agents()
    vouched = await _recognised(credentials)
    if vouched is not None:
        _check_binding(vouched, credentials)
    return [agent for agent in registry.agents() if await _shows(agent, vouched)]


async def _shows(agent: Agent, vouched: Vouched | None) -> bool:
    if not listed(agent):
        return True
    known = vouched is not None and (_is_for(agent.slug, vouched) or _is_for(None, vouched))
    caller = vouched.caller if vouched is not None and known else ANONYMOUS
    return Right.SEE in await grants.rights(caller, agent.slug)


async def _let_use(caller: Caller, agent: Agent, address: str) -> None:
    """Raise what whoever may see the agent, but not use it, is told."""
    if Right.USE in await grants.rights(caller, agent.slug):
        return
    if caller.anonymous:
        raise Unauthenticated
    denials.denied(caller, agent, "may see it, but not use it", address=address)
    raise Forbidden("The caller may see this agent, but not use it")


async def _recognised(credentials: Credentials) -> Vouched | None:
    """Whoever shows credentials, wherever it may go with them; None shows none. Raises WrongCredentials, Overloaded."""
    credential = shown(credentials)
    if credential is None:
        return None
    key = digest(credential)
    vouched = _known.get(key)
    if vouched is None:
        await metering.may_try(credentials.address)
        vouched = await _look(credential, key)
    return vouched


def _admit(vouched: Vouched, credentials: Credentials, agent: Agent | None) -> None:
    """Whoever it is: may it come here, and with these credentials?"""
    if vouched.scheme not in accepted(agent):
        raise _misplaced(f"{vouched.scheme} is not accepted by this agent")
    _check_use(vouched, credentials, agent.slug if agent else None)
    lacking = (
        [scope for scope in agent.scopes if scope not in vouched.caller.scopes] if agent else ()
    )
    if lacking:
        why = f"lacks the scope {' '.join(lacking)}"
        denials.denied(vouched.caller, agent, why, address=credentials.address)
        raise InsufficientScope.lacking(lacking)


def _check_use(vouched: Vouched, credentials: Credentials, slug: str | None) -> None:
    """Refuse credentials that were made out to somebody else, or stolen."""
    if not _is_for(slug, vouched):
        raise _misplaced("a token for another audience")
    _check_binding(vouched, credentials)


def _check_binding(vouched: Vouched, credentials: Credentials) -> None:
    if vouched.bound and vouched.bound != _thumbprint(credentials):
        raise _misplaced("a token without the certificate it is bound to")


def _misplaced(why: str) -> WrongCredentials:
    """Credentials that are somebody's, and wrong here."""
    fault = refused(why)
    fault.genuine = True
    return fault


def _is_for(slug: str | None, vouched: Vouched) -> bool:
    """Were the credentials made out to this agent (None: the host itself), or to nobody in particular?"""
    if vouched.audiences is None:
        return True
    wanted = tokens.audience(slug)
    return bool(wanted) and wanted in vouched.audiences


def _thumbprint(credentials: Credentials) -> str:
    certificate = certificate_of(credentials)
    return certificates.thumbprint(certificate) if certificate else ""


async def _look(credential: Shown, key: bytes) -> Vouched:
    """Have it verified, once for all who show it at the same time."""
    if (before := _wrong.get(key)) is not None:
        raise again(*before)
    task = _asking.get(key)
    if task is None or task.get_loop() is not asyncio.get_running_loop():
        if len(_asking) >= MOST_ASKED:
            raise Overloaded("Too many credentials are waiting to be looked at", retry_after="1")
        task = _asking[key] = asyncio.create_task(_verified(credential, key))
        task.add_done_callback(lambda done: _looked(key, done))
    return await asyncio.shield(task)


def _looked(key: bytes, task: asyncio.Task[Vouched]) -> None:
    if _asking.get(key) is task:
        del _asking[key]
    if not task.cancelled():
        task.exception()  # whoever asked may have left: nobody has to hear it


async def _verified(credential: Shown, key: bytes) -> Vouched:
    try:
        if not credential.scheme:
            raise refused("credentials that no scheme here can read")
        vouched = await VERIFIERS[credential.scheme](credential)
    except WrongCredentials as fault:
        _wrong.keep(key, (fault.why, fault.message, fault.whose), conf.CREDENTIAL_SECONDS)
        raise
    _known.keep(key, vouched, min(conf.CREDENTIAL_SECONDS, vouched.until - time.time()))
    return vouched
