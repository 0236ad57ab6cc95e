"""HTTP Basic (RFC 7617) with Django's users and authentication backends.

Password hashes are slow on purpose, so a few threads of their own verify them, and only as many requests wait for these
threads as they can serve soon.
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
from a2a_tasks.access.credentials import Identity
from a2a_tasks.access.errors import refuse
from a2a_tasks.access.hashing import AT_ONCE
from a2a_tasks.agents.security import BASIC, is_scope
from a2a_tasks.caller import Caller
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store.db import run_here

__all__ = ["scopes_of", "verify"]

#: Requests that may wait for a thread.
MAX_WAITING = 32
#: Most characters of name and password together, and of a user's name.
MAX_LENGTH, MAX_NAME_LENGTH = 1024, 150

_threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="passwords")
_waiting = 0


async def verify(text: str, address: str = "") -> Identity:
    """Return the identity of a name and password from an address. Raises WrongCredentials, Overloaded.

    A right password is refused too while the name is locked out for this address (`lockout.py`): the client cannot
    tell the difference.
    """
    global _waiting  # noqa: PLW0603 - one counter per process
    name, password = _read(text)
    if _waiting >= MAX_WAITING:
        raise Overloaded("Too many passwords are waiting to be verified", retry_after="1")
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
        raise refuse("Basic credentials that cannot be read") from None
    if not colon or not name.isprintable() or len(name) > MAX_NAME_LENGTH:
        raise refuse("Basic credentials that cannot be a user's")
    if "\0" in password or len(name) + len(password) > MAX_LENGTH:
        raise refuse("Basic credentials that cannot be a user's")
    return name, password


def _look_up(name: str, password: str, address: str) -> Identity:
    try:
        return run_here(_verify_password, name, password, address)
    finally:
        connections.close_all()


def _verify_password(name: str, password: str, address: str) -> Identity:
    request = lockout.attempt(address)
    user = authenticate(request, username=name, password=password)
    if user is None:
        raise refuse("a wrong name or password, or too many of them")
    lockout.forgive(request, name)
    return Identity(Caller(principal=f"user:{user.pk}", scopes=scopes_of(user)), BASIC)


def scopes_of(user: AbstractBaseUser | AnonymousUser) -> frozenset[str]:
    """Return the scopes of a user: the names of its groups that are valid scopes."""
    names = Group.objects.filter(user=user.pk).values_list("name", flat=True)
    return frozenset(filter(is_scope, names))
