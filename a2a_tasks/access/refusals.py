"""Why credentials are refused: told to the log now and then, never to the client, and never with the credentials."""

from __future__ import annotations

import logging

from a2a_tasks.outages import Outage
from a2a_tasks.protocol.errors import WrongCredentials

__all__ = ["again", "refused"]

_refusals = Outage(logging.getLogger(__name__), "credentials were refused")


class _Why(Exception):
    pass


def refused(
    why: str, told: str = "The credentials are not valid", whose: str = ""
) -> WrongCredentials:
    """The error to raise; `why` is for the operator, `told` for the client. Neither may hold what was shown.

    `whose`: the principal whose credentials they would be. It has a place of its own, so that it can be erased.
    """
    _refusals.count(_Why(f"{whose}: {why}" if whose else why))
    return again(why, told, whose)


def again(why: str, told: str, whose: str) -> WrongCredentials:
    """The same for credentials that were refused a moment ago: the log has been told."""
    fault = WrongCredentials(told)
    fault.why, fault.whose = why, whose
    return fault
