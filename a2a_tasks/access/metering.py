"""Who may come how often: by caller, by tenant and by agent; and how often an address may be wrong.

Counted at the one door of all callers (`callers`), before a byte of a request's body is read. See
docs/decisions/0109.
"""

from __future__ import annotations

import functools
import ipaddress
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.signals import setting_changed
from django.dispatch import receiver

from a2a_tasks.access.buckets import LocalBuckets, SharedBuckets
from a2a_tasks.agents.agent import Agent
from a2a_tasks.caller import Caller
from a2a_tasks.conf import conf
from a2a_tasks.protocol.errors import RateLimited
from a2a_tasks.rates import Rate, read_rate

__all__ = ["count_wrong", "may_try", "network", "rates_for", "take"]

#: Of an IPv6 address, the network counts: every client has as many addresses as it likes.
NETWORK_BITS = 64


@dataclass(frozen=True, slots=True)
class _Rates:
    """What the settings say."""

    caller: Rate | None
    tenant: Rate | None
    agent: Rate | None
    wrong: Rate | None


@functools.cache
def _rates() -> _Rates:
    return _Rates(
        read_rate(conf.RATE_PER_CALLER),
        read_rate(conf.RATE_PER_TENANT),
        read_rate(conf.RATE_PER_AGENT),
        read_rate(conf.RATE_WRONG_CREDENTIALS),
    )


@functools.cache
def _buckets() -> LocalBuckets | SharedBuckets:
    return SharedBuckets() if settings.REDIS_URL else LocalBuckets()


@receiver(setting_changed)
def forget(**_: Any) -> None:
    """Read the settings anew, and begin with full buckets."""
    _rates.cache_clear()
    _buckets.cache_clear()


def rates_for(
    caller: Caller, agent: Agent | None, address: str, own: Rate | None = None
) -> dict[str, Rate]:
    """The buckets that a request of this caller to the agent takes of; `own` is the rate of its credentials."""
    rates, limits = {}, _rates()
    if per_caller := own or limits.caller:
        rates[f"caller:{caller.principal or network(address)}"] = per_caller
    if limits.tenant and caller.tenant:
        rates[f"tenant:{caller.tenant}"] = limits.tenant
    if agent is not None and (per_agent := read_rate(agent.rate) or limits.agent):
        rates[f"agent:{agent.slug}"] = per_agent
    return rates


async def take(rates: dict[str, Rate]) -> None:
    """A token of each. Raises RateLimited if one has none."""
    if wait := await _asked(rates):
        raise RateLimited.until(wait)


async def may_try(address: str) -> None:
    """May this address show credentials that are not known? Raises RateLimited: too many were wrong."""
    rate = _rates().wrong
    if rate and (wait := await _asked(_wrong(address, rate), only_look=True)):
        raise RateLimited.until(wait, "Too many wrong credentials")


async def count_wrong(address: str) -> None:
    """Credentials from this address were wrong."""
    if rate := _rates().wrong:
        await _asked(_wrong(address, rate))


def _wrong(address: str, rate: Rate) -> dict[str, Rate]:
    return {f"wrong:{network(address)}": rate}


async def _asked(rates: dict[str, Rate], *, only_look: bool = False) -> float:
    buckets = _buckets()
    if isinstance(buckets, LocalBuckets):
        return buckets.take(rates, only_look=only_look)
    return await buckets.take(rates, only_look=only_look)


@functools.lru_cache(maxsize=4096)
def network(address: str) -> str:
    """Whom an address stands for: itself, of IPv6 the subscriber."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:  # a socket of the file system, or nothing
        return address
    if isinstance(found, ipaddress.IPv6Address) and not found.ipv4_mapped:
        return str(ipaddress.ip_network((int(found), NETWORK_BITS), strict=False))
    return str(getattr(found, "ipv4_mapped", None) or found)
