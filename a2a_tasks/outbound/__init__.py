"""Calls this host makes on somebody else's behalf: one guard and one HTTP client for all of them.

A URL that a client, a remote agent or a document handed us may lead anywhere, also to what only this machine can reach.
Whoever calls one (webhooks do; keys, cards and files of others will) makes a `Guard` of a `Policy` and a `Client` of the
guard, and calls nothing in any other way. See docs/decisions/0090 and 0091.
"""

from a2a_tasks.outbound.client import Client, Limits, trusting
from a2a_tasks.outbound.exchange import Answer
from a2a_tasks.outbound.faults import AddressRefused, Kind, NameNotResolved, Unanswered
from a2a_tasks.outbound.guard import Guard, Target
from a2a_tasks.outbound.policy import Policy
from a2a_tasks.outbound.resolver import Resolve, SystemResolver

__all__ = [
    "AddressRefused",
    "Answer",
    "Client",
    "Guard",
    "Kind",
    "Limits",
    "NameNotResolved",
    "Policy",
    "Resolve",
    "SystemResolver",
    "Target",
    "Unanswered",
    "trusting",
]
