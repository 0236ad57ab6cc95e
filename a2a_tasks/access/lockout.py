"""Lockout after wrong passwords: by user name and address, for the admin and HTTP Basic alike.

django-axes counts and refuses (`AXES_*` in the settings name the functions here). By name alone, any client could lock
the operator out; by address alone, one guest of a network could lock out all others.
"""

from __future__ import annotations

import ipaddress
from datetime import timedelta

from django.apps import apps
from django.http import HttpRequest

from a2a_tasks.conf import conf

__all__ = ["SignInAttempt", "address", "attempt", "failures", "forgive", "read_cooloff"]

#: Prefix length of one subscriber's IPv6 network: the subscriber can use any address in it, so only the network counts.
SUBSCRIBER = 64


def failures(request: HttpRequest, credentials: object) -> int:
    """Return the number of wrong passwords that locks out."""
    return int(conf.LOGIN_FAILURES)


def read_cooloff(request: HttpRequest | None = None) -> timedelta:
    """Return the duration of a lockout, from the last wrong password."""
    return timedelta(minutes=conf.LOGIN_WAIT_MINUTES)


def address(request: HttpRequest) -> str | None:
    """Return the address of the client; for IPv6, the subscriber's network. None = unknown, as on Unix domain sockets.

    The client is the peer of the connection, or the one that a proxy among TRUSTED_PROXIES forwards.
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


class SignInAttempt(HttpRequest):
    """The request that Django's authentication backends get for a password by HTTP Basic."""


def attempt(client: str) -> SignInAttempt:
    """Return the request of an attempt from this address."""
    request = SignInAttempt()
    request.META = {"REMOTE_ADDR": client, "HTTP_USER_AGENT": "HTTP Basic"}
    return request


def forgive(request: HttpRequest, name: str) -> None:
    """Delete the failed attempts of a name, after a right password; there are none in a project without django-axes."""
    if not apps.is_installed("axes"):
        return
    model = apps.get_model("axes", "AccessAttempt")
    attempts = model.objects.filter(username=name, ip_address=address(request))
    if attempts.exists():  # a read-only database still allows sign-ins without failures
        attempts.delete()
