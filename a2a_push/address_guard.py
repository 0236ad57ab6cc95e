"""The address guard of webhooks: the guard of outgoing calls (a2a_tasks/outbound), with the settings of webhooks."""

from __future__ import annotations

from functools import lru_cache

from a2a_tasks.conf import conf
from a2a_tasks.outbound import Guard, OutboundPolicy

__all__ = ["check_url", "guard"]


def check_url(url: str) -> None:
    """Raise AddressRefused, whose reason is for the client, if the text of the URL is not allowed.

    No name is resolved here; names are resolved and checked before every delivery.
    """
    guard().check(url)


def guard() -> Guard:
    """Return the guard for the present settings.

    Raises ValueError for an invalid one (a system check reports it at start).
    """
    return _guard(
        conf.WEBHOOK_ALLOW_HTTP,
        conf.WEBHOOK_ALLOW_PRIVATE,
        conf.WEBHOOK_ALLOW_NETWORKS,
        conf.WEBHOOK_PORTS,
        conf.WEBHOOK_PROXY,
    )


@lru_cache(maxsize=4)
def _guard(http: bool, loopback: bool, allowed: str, ports: str, proxy: str) -> Guard:
    return Guard(
        OutboundPolicy.read(http=http, loopback=loopback, allowed=allowed, ports=ports, proxy=proxy)
    )
