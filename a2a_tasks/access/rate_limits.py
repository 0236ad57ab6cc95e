"""Rate limits by caller, by tenant and by agent, and of wrong credentials by address.

`authentication` counts every request before a byte of its body is read. See docs/decisions/0007.
"""

from __future__ import annotations

import functools
import ipaddress
from dataclasses import dataclass
from typing import Any

from django.core.signals import setting_changed
from django.dispatch import receiver

from a2a_tasks.access.token_buckets import LocalBuckets, SharedBuckets
from a2a_tasks.agents.agent import Agent
from a2a_tasks.caller import Caller
from a2a_tasks.conf import conf, project
from a2a_tasks.protocol.errors import RateLimited
from a2a_tasks.rates import Rate, read_rate

__all__ = ["count_wrong", "look", "may_sign_in", "may_try", "network", "rates_for", "take"]

#: Prefix length of the IPv6 networks that are counted: a client can use any address of its network.
NETWORK_BITS = 64
#: Rate of sign-in forms from one address: lower than the rate at which two processors can hash.
FORMS = Rate(interval=2_000_000, burst=30)


@dataclass(frozen=True, slots=True)
class _Rates:
    """The rates in the settings."""

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
    return SharedBuckets() if project.REDIS_URL else LocalBuckets()


@receiver(setting_changed)
def forget(**_: Any) -> None:
    """Clear the caches: the settings are read anew, and all buckets are full."""
    _rates.cache_clear()
    _buckets.cache_clear()


def rates_for(
    caller: Caller, agent: Agent | None, address: str, own: Rate | None = None
) -> dict[str, Rate]:
    """Return the buckets of a request from this caller to the agent; `own` is the rate of its credentials."""
    rates, limits = {}, _rates()
    if per_caller := own or limits.caller:
        rates[f"caller:{caller.principal or network(address)}"] = per_caller
    if limits.tenant and caller.tenant:
        rates[f"tenant:{caller.tenant}"] = limits.tenant
    if agent is not None and (per_agent := read_rate(agent.rate) or limits.agent):
        rates[f"agent:{agent.slug}"] = per_agent
    return rates


async def take(rates: dict[str, Rate]) -> None:
    """Take a token from each bucket. Raises RateLimited if one is empty."""
    if wait := await _take(rates):
        raise RateLimited.until(wait)


async def look(rates: dict[str, Rate]) -> None:
    """Raise RateLimited if one of the buckets is empty, and take nothing."""
    if rates and (wait := await _take(rates, only_look=True)):
        raise RateLimited.until(wait)


async def may_try(address: str) -> None:
    """Check that this address may present uncached credentials. Raises RateLimited after too many wrong ones."""
    rate = _rates().wrong
    if rate and (wait := await _take(_wrong(address, rate), only_look=True)):
        raise RateLimited.until(wait, "Too many wrong credentials")


async def may_sign_in(address: str) -> None:
    """Check that this address may send a sign-in form. Raises RateLimited.

    Every form counts, right or wrong, before its password is hashed: otherwise forms that are sent at once would all
    pass before the first of them turns out to be wrong.
    """
    if not _rates().wrong:
        return
    if wait := await _take({f"form:{network(address)}": FORMS}):
        raise RateLimited.until(wait, "Too many sign-in forms")
    await may_try(address)


async def count_wrong(address: str) -> None:
    """Count wrong credentials from this address."""
    if rate := _rates().wrong:
        await _take(_wrong(address, rate))


def _wrong(address: str, rate: Rate) -> dict[str, Rate]:
    return {f"wrong:{network(address)}": rate}


async def _take(rates: dict[str, Rate], *, only_look: bool = False) -> float:
    buckets = _buckets()
    if isinstance(buckets, LocalBuckets):
        return buckets.take(rates, only_look=only_look)
    return await buckets.take(rates, only_look=only_look)


@functools.lru_cache(maxsize=4096)
def network(address: str) -> str:
    """Return the address as it is counted: itself, or for IPv6 the subscriber's network."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:  # a Unix domain socket, or nothing
        return address
    if isinstance(found, ipaddress.IPv6Address) and not found.ipv4_mapped:
        return str(ipaddress.ip_network((int(found), NETWORK_BITS), strict=False))
    return str(getattr(found, "ipv4_mapped", None) or found)
