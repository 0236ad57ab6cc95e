"""Errors for refused credentials: the log gets the reason at intervals, the client never; neither gets credentials."""

from __future__ import annotations

import logging

from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.protocol.errors import WrongCredentials

__all__ = ["again", "refuse"]

_refusals = ThrottledLogger(logging.getLogger(__name__), "credentials were refused")


class _Why(Exception):
    pass


def refuse(
    why: str, message: str = "The credentials are not valid", principal: str = ""
) -> WrongCredentials:
    """Return the error to raise. The reason `why` is for the operator, `message` for the client.

    Neither may contain credentials. `principal`: the one that the credentials name. It is a separate value, so that it can be erased.
    """
    _refusals.warning(_Why(f"{principal}: {why}" if principal else why))
    return again(why, message, principal)


def again(why: str, message: str, principal: str) -> WrongCredentials:
    """Return the error for a refusal from the cache, which is logged already."""
    fault = WrongCredentials(message)
    fault.why, fault.principal = why, principal
    return fault
