"""HTTP Basic (RFC 7617) with the users of Django, as its authentication backends know them.

A password is made slow to try on purpose, so this happens in threads of its own, few of them, and no more requests
wait for them than they can see to soon.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from concurrent.futures import ThreadPoolExecutor

from django.contrib.auth import authenticate
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, Group
from django.db import connections

from a2a_tasks.access import lockout
from a2a_tasks.access.hashing import AT_ONCE
from a2a_tasks.access.refusals import refused
from a2a_tasks.access.vouched import Vouched
from a2a_tasks.agents.security import BASIC, is_scope
from a2a_tasks.caller import Caller
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store.hop import in_thread

__all__ = ["scopes_of", "verify"]

#: Requests that may wait for their turn.
MOST_WAITING = 32
#: Characters of name and password together, and of a name that a user may have.
LONGEST, LONGEST_NAME = 1024, 150

_threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="passwords")
_waiting = 0


async def verify(text: str, address: str = "") -> Vouched:
    """Who shows this name and password, from which address. Raises WrongCredentials, Overloaded.

    Wrong also while the name, from this address, has to wait (`lockout.py`); the client is told no difference.
    """
    global _waiting  # noqa: PLW0603 - one line a process
    name, password = _read(text)
    if _waiting >= MOST_WAITING:
        raise Overloaded("Too many passwords are waiting to be looked at", retry_after="1")
    _waiting += 1
    try:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(_threads, _look_up, name, password, address)
    finally:
        _waiting -= 1


def _read(text: str) -> tuple[str, str]:
    try:
        name, colon, password = base64.b64decode(text, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        raise refused("Basic credentials that cannot be read") from None
    if not colon or not name.isprintable() or len(name) > LONGEST_NAME:
        raise refused("Basic credentials that cannot be a user's")
    if "\0" in password or len(name) + len(password) > LONGEST:
        raise refused("Basic credentials that cannot be a user's")
    return name, password


def _look_up(name: str, password: str, address: str) -> Vouched:
    try:
        return in_thread(_vouched, name, password, address)
    finally:
        connections.close_all()


def _vouched(name: str, password: str, address: str) -> Vouched:
    request = lockout.attempt(address)
    user = authenticate(request, username=name, password=password)
    if user is None:
        raise refused("a user's name or password is wrong, or has been too often")
    lockout.forgive(request, name)
    return Vouched(Caller(principal=f"user:{user.pk}", scopes=scopes_of(user)), BASIC)


def scopes_of(user: AbstractBaseUser | AnonymousUser) -> frozenset[str]:
    """The scopes a user has: the groups whose names can be scopes."""
    names = Group.objects.filter(user=user.pk).values_list("name", flat=True)
    return frozenset(filter(is_scope, names))
