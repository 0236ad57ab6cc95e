"""Outbound calls to URLs from others: one guard and one HTTP client for all of them.

A URL from a client, a remote agent or a document may lead anywhere, also to servers that only this machine can reach.
Code that calls such a URL (webhooks, keys, cards, files) makes a `Guard` from an `OutboundPolicy` and a `Client` from
the guard, and opens no other connections. See docs/decisions/0017 and 0025.
"""

from a2a_tasks.outbound.client import Client, ClientLimits, IncomingAnswer, make_tls_context
from a2a_tasks.outbound.connector import Connector
from a2a_tasks.outbound.faults import AddressRefused, FaultKind, NameNotResolved, Unanswered
from a2a_tasks.outbound.guard import Guard, Target
from a2a_tasks.outbound.policy import OutboundPolicy
from a2a_tasks.outbound.resolver import Resolve, SystemResolver

__all__ = [
    "AddressRefused",
    "IncomingAnswer",
    "Client",
    "Connector",
    "Guard",
    "FaultKind",
    "ClientLimits",
    "NameNotResolved",
    "OutboundPolicy",
    "Resolve",
    "SystemResolver",
    "Target",
    "Unanswered",
    "make_tls_context",
]
