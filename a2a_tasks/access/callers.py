"""From a request's credentials to a Caller: the one door of every route of every binding. Deny by default.

What was verified is remembered for A2A_CREDENTIAL_SECONDS, under a keyed hash, so that most requests cost no look at
the database, no signature and no password; revoking takes effect after as long.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

from django.core.signals import setting_changed
from django.dispatch import receiver

from a2a_tasks.access import api_keys, certificates, denials, passwords, tokens
from a2a_tasks.access.credentials import Credentials, Shown, certificate_of, shown
from a2a_tasks.access.refusals import again, refused
from a2a_tasks.access.vouched import Memory, Vouched, digest
from a2a_tasks.agents.agent import Agent
from a2a_tasks.agents.security import (
    API_KEY,
    BASIC,
    BEARER,
    MUTUAL_TLS,
    accepted,
    anonymous_allowed,
    open_to_anybody,
)
from a2a_tasks.caller import ANONYMOUS, Caller
from a2a_tasks.conf import conf
from a2a_tasks.protocol.errors import (
    InsufficientScope,
    Overloaded,
    Unauthenticated,
    WrongCredentials,
)

__all__ = ["Credentials", "anonymous_allowed", "identify"]

VERIFIERS: Mapping[str, Callable[[str], Awaitable[Vouched]]] = {
    BEARER: tokens.verify,
    API_KEY: api_keys.verify,
    BASIC: passwords.verify,
    MUTUAL_TLS: certificates.verify,
}
#: Credentials remembered: good ones, and wrong ones, which cannot push out the good.
MOST_KNOWN, MOST_WRONG = 20_000, 2_000
#: Credentials that are looked at at once; the next gets 503, so that made-up ones are no way to fill the database's line.
MOST_ASKED = 200

_known: Memory[Vouched] = Memory(MOST_KNOWN)
_wrong: Memory[tuple[str, str]] = Memory(MOST_WRONG)
_asking: dict[bytes, asyncio.Task[Vouched]] = {}


@receiver(setting_changed)
def forget(**_: Any) -> None:
    """Look at all credentials anew."""
    _known.clear()
    _wrong.clear()


async def identify(credentials: Credentials, agent: Agent | None = None) -> Caller:
    """The caller that the credentials vouch for, if it may use the agent (None: the host's own surfaces).

    Wrong credentials are refused also where none would do: whoever shows some wants to be known.
    Raises Unauthenticated, WrongCredentials, InsufficientScope, Overloaded.
    """
    credential = shown(credentials)
    if credential is None:
        if open_to_anybody(agent):
            return ANONYMOUS
        denials.refused(credentials.address, agent, "no credentials")
        raise Unauthenticated
    key = digest(credential)
    try:
        vouched = _known.get(key) or await _look(credential, key)
        _admit(vouched, credentials, agent)
    except WrongCredentials as fault:
        denials.refused(credentials.address, agent, fault.why)
        raise
    return vouched.caller


def _admit(vouched: Vouched, credentials: Credentials, agent: Agent | None) -> None:
    """Whoever it is: may it come here, and with these credentials?"""
    if vouched.scheme not in accepted(agent):
        raise refused(f"{vouched.scheme} is not accepted by this agent")
    if vouched.audiences is not None and not _is_for(agent, vouched.audiences):
        raise refused("a token for another audience")
    if vouched.bound and vouched.bound != _thumbprint(credentials):
        raise refused("a token without the certificate it is bound to")
    lacking = (
        [scope for scope in agent.scopes if scope not in vouched.caller.scopes] if agent else ()
    )
    if lacking:
        why = f"lacks the scope {' '.join(lacking)}"
        denials.denied(vouched.caller, agent, why, address=credentials.address)
        raise InsufficientScope.lacking(lacking)


def _is_for(agent: Agent | None, audiences: Collection[str]) -> bool:
    wanted = tokens.audience(agent)
    return bool(wanted) and wanted in audiences


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
        vouched = await VERIFIERS[credential.scheme](credential.text)
    except WrongCredentials as fault:
        _wrong.keep(key, (fault.why, fault.message), conf.CREDENTIAL_SECONDS)
        raise
    _known.keep(key, vouched, min(conf.CREDENTIAL_SECONDS, vouched.until - time.time()))
    return vouched
