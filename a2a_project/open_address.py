"""The refusal of an address that other machines reach, on a host that lets everyone in because nobody has said otherwise."""

from __future__ import annotations

import ipaddress

from django.core.management.base import CommandError

from a2a_tasks.agents.security import allows_anonymous
from a2a_tasks.conf import conf

__all__ = ["refuse_open_address"]

OPEN = (
    "At {host} everyone who can reach this machine could use the agents without credentials. Say what you want: "
    "A2A_ANONYMOUS=0 (callers need a key: python manage.py api_keys create NAME) or A2A_ANONYMOUS=1 (everyone may). "
    "HOST=127.0.0.1 serves only this machine."
)


def refuse_open_address(host: str) -> None:
    """Refuse an address that other machines reach where nobody has said whether callers need credentials.

    The embedded host lets everyone in, which is for trying it on one machine. Raises CommandError.
    """
    if conf.ANONYMOUS == "auto" and allows_anonymous() and not is_loopback(host):
        raise CommandError(OPEN.format(host=host))


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches the address. Names but `localhost` count as reached by others."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
