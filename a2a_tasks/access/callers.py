"""From a request's credentials to a Caller. Deny by default."""

from __future__ import annotations

from collections.abc import Mapping

from django.conf import settings

from a2a_tasks.caller import ANONYMOUS, Caller
from a2a_tasks.conf import conf
from a2a_tasks.protocol.errors import Unauthenticated

__all__ = ["anonymous_allowed", "identify"]


def anonymous_allowed() -> bool:
    """May callers without credentials in? By default only on the embedded host."""
    if conf.ANONYMOUS == "auto":
        return bool(settings.EMBEDDED)
    return bool(conf.ANONYMOUS.strip().lower() in {"1", "true", "yes", "on"})


def identify(headers: Mapping[str, str]) -> Caller:
    """The caller that the headers (lower-case names) vouch for. Raises Unauthenticated."""
    if anonymous_allowed():
        return ANONYMOUS
    raise Unauthenticated
