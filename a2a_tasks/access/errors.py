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
    why: str, message: str = "The credentials are not valid", whose: str = ""
) -> WrongCredentials:
    """Return the error to raise; `why` is for the operator, `message` for the client. Neither may contain credentials.

    `whose`: the principal that the credentials name. It is a separate value, so that it can be erased.
    """
    _refusals.warning(_Why(f"{whose}: {why}" if whose else why))
    return again(why, message, whose)


def again(why: str, message: str, whose: str) -> WrongCredentials:
    """Return the error for a refusal from the cache, which is logged already."""
    fault = WrongCredentials(message)
    fault.why, fault.whose = why, whose
    return fault
