"""The actor of an action. Operations of the protocol name their caller; other code sets the actor with `act_as`.

An actor is a principal (`key:...`, `jwt:...`, `user:7`, `cert:...`; empty = anonymous), `staff:<user>` on the pages, or
`system:<what>`: a command with the user of the operating system, or a duty of the host.
"""

from __future__ import annotations

import getpass
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

__all__ = ["act_as", "actor", "request_id", "request_id_of", "staff", "system"]

#: The valid ids of requests; others are not stored.
_REQUEST = re.compile(r"[A-Za-z0-9._:/+=@-]{1,64}")


class _ActorContext(NamedTuple):
    #: Called when an entry is written: a user who signs in is known only then.
    who: Callable[[], str]
    request: str


_acting: ContextVar[_ActorContext | None] = ContextVar("a2a_acting", default=None)


@contextmanager
def act_as(who: Callable[[], str], request: str = "") -> Iterator[None]:
    """Set the actor, and the request id, of all actions in the block."""
    token = _acting.set(_ActorContext(who, request))
    try:
        yield
    finally:
        _acting.reset(token)


def actor() -> str:
    """Return the present actor; by default the host itself."""
    found = _acting.get()
    return found.who() if found is not None else "system:host"


def request_id() -> str:
    """Return the id of the present request, if it has one."""
    found = _acting.get()
    return found.request if found is not None else ""


def request_id_of(header: str) -> str:
    """Return the id that a client gave its request (`X-Request-ID`), if it is valid."""
    return header if _REQUEST.fullmatch(header) else ""


def staff(key: object) -> str:
    """Return the actor for a user on the pages; empty for None."""
    return "" if key is None else f"staff:{key}"


def system(what: str) -> str:
    """Return the actor for a command, with the user of the operating system that gave it."""
    try:
        return f"system:{what}@{getpass.getuser()}"
    except (KeyError, OSError, ImportError):  # a user without a name, as in some containers
        return f"system:{what}"
