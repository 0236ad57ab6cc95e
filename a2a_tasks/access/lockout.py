"""Who is told to wait after wrong passwords: a name from an address, in the admin and by HTTP Basic alike.

Counting and refusing is django-axes' (`AXES_*` in the settings name the functions here). By name alone, anybody could
lock the operator out; by address alone, one guest of a network all others.
"""

from __future__ import annotations

import ipaddress
from datetime import timedelta

from axes.models import AccessAttempt
from django.http import HttpRequest

from a2a_tasks.conf import conf

__all__ = ["Attempt", "address", "attempt", "failures", "forgive", "waiting"]

#: What one subscriber has of IPv6: within it addresses are free, so that they tell nobody apart.
SUBSCRIBER = 64


def failures(request: HttpRequest, credentials: object) -> int:
    """How many wrong passwords are one too many."""
    return int(conf.LOGIN_FAILURES)


def waiting(request: HttpRequest | None = None) -> timedelta:
    """How long after the last of them."""
    return timedelta(minutes=conf.LOGIN_WAIT_MINUTES)


def address(request: HttpRequest) -> str | None:
    """Where a request is from; of IPv6, the subscriber. None = unknown, as of sockets in the file system.

    It is the other end of the connection, or whom a proxy among TRUSTED_PROXIES speaks for.
    """
    try:
        found = ipaddress.ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:
        return None
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((int(found), SUBSCRIBER), strict=False).network_address)


class Attempt(HttpRequest):
    """What Django's backends take for the request with which somebody tries a password by HTTP Basic."""


def attempt(client: str) -> Attempt:
    """One from this address."""
    request = Attempt()
    request.META = {"REMOTE_ADDR": client, "HTTP_USER_AGENT": "HTTP Basic"}
    return request


def forgive(request: HttpRequest, name: str) -> None:
    """The password was right after all: count anew."""
    attempts = AccessAttempt.objects.filter(username=name, ip_address=address(request))
    if attempts.exists():  # a database that takes no writes may still be read
        attempts.delete()
