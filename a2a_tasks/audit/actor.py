"""Who acts. Operations of the protocol name their caller; for everything else it is said here, around the work.

A principal (`key:...`, `jwt:...`, `user:7`, `cert:...`; empty = nobody vouched for it), `staff:<user>` on the pages, or
`system:<what>`: a command with the user of the operating system, or a duty of the host.
"""

from __future__ import annotations

import getpass
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

__all__ = ["acting", "actor", "request_id", "request_named", "staff", "system"]

#: What a client may call its request; anything else is not kept.
_REQUEST = re.compile(r"[A-Za-z0-9._:/+=@-]{1,64}")


class _Acting(NamedTuple):
    #: Asked when an entry is written: who signs in is known only then.
    who: Callable[[], str]
    request: str


_acting: ContextVar[_Acting | None] = ContextVar("a2a_acting", default=None)


@contextmanager
def acting(who: Callable[[], str], request: str = "") -> Iterator[None]:
    """Whatever is done inside, this one does it, at this request."""
    token = _acting.set(_Acting(who, request))
    try:
        yield
    finally:
        _acting.reset(token)


def actor() -> str:
    """Who acts now; unless somebody said so, the host itself."""
    found = _acting.get()
    return found.who() if found is not None else "system:host"


def request_id() -> str:
    """The id of the request that is served now, if it has one."""
    found = _acting.get()
    return found.request if found is not None else ""


def request_named(header: str) -> str:
    """The id a client gave its request (`X-Request-ID`), if it can be kept as it is."""
    return header if _REQUEST.fullmatch(header) else ""


def staff(key: object) -> str:
    """A user at work on the pages; empty for nobody."""
    return "" if key is None else f"staff:{key}"


def system(what: str) -> str:
    """A command, by the user of the operating system that gave it."""
    try:
        return f"system:{what}@{getpass.getuser()}"
    except (KeyError, OSError, ImportError):  # a user without a name, as in some containers
        return f"system:{what}"
