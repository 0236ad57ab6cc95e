"""Why credentials are refused: told to the log now and then, never to the client, and never with the credentials."""

from __future__ import annotations

import logging

from a2a_tasks.outages import Outage
from a2a_tasks.protocol.errors import WrongCredentials

__all__ = ["again", "refused"]

_refusals = Outage(logging.getLogger(__name__), "credentials were refused")


class _Why(Exception):
    pass


def refused(why: str, told: str = "The credentials are not valid") -> WrongCredentials:
    """The error to raise; `why` is for the operator, `told` for the client. Neither may hold what was shown."""
    _refusals.count(_Why(why))
    return again(why, told)


def again(why: str, told: str) -> WrongCredentials:
    """The same for credentials that were refused a moment ago: the log has been told."""
    fault = WrongCredentials(told)
    fault.why = why
    return fault
