"""Which addresses webhooks may have: the guard of all calls out (a2a_tasks/outbound), under the settings of webhooks."""

from __future__ import annotations

from functools import lru_cache

from a2a_tasks.conf import conf
from a2a_tasks.outbound import Guard, Policy

__all__ = ["check_url", "guard"]


def check_url(url: str) -> None:
    """Raise AddressRefused, whose reason is for the client, if the text of the URL forbids to call it.

    No name is resolved; that is done, and judged, before every delivery.
    """
    guard().check(url)


def guard() -> Guard:
    """The guard under the settings of now. Raises ValueError if one cannot be read (a system check says so at start)."""
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
        Policy.read(http=http, loopback=loopback, allowed=allowed, ports=ports, proxy=proxy)
    )
