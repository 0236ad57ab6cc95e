"""Token buckets, in this process or in Redis: a request takes one token from each, or none at all.

A bucket is stored as the moment at which it will be full again (the generic cell rate algorithm: one number per
bucket, and no job that fills it).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping

from a2a_tasks import pubsub
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.rates import Rate

__all__ = ["LocalBuckets", "SharedBuckets"]

Rates = Mapping[str, Rate]
_away = ThrottledLogger(
    logging.getLogger(__name__), "rates are counted in each process alone: Redis is away"
)
#: Most buckets in the memory of a process; only those that are not full are kept.
MAX_COUNT = 50_000
#: Longest wait of a request for Redis, and the pause after a failure of Redis.
PATIENCE_SECONDS, RETRY_SECONDS = 0.25, 2.0

# KEYS: the buckets; ARGV: 1 to take, 0 to look, then interval and span of each, in microseconds.
TAKE = """
local time = redis.call('TIME')
local now, wait, full = time[1] * 1000000 + time[2], 0, {}
for i, key in ipairs(KEYS) do
  local interval, span = tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i + 1])
  full[i] = math.max(tonumber(redis.call('GET', key)) or now, now) + interval
  wait = math.max(wait, full[i] - now - span)
end
if wait <= 0 and ARGV[1] == '1' then
  for i, key in ipairs(KEYS) do
    redis.call('SET', key, string.format('%.0f', full[i]), 'PX', math.ceil((full[i] - now) / 1000) + 1)
  end
end
return math.ceil(wait)
"""


class LocalBuckets:
    """Buckets in memory: a bounded number, of which the fullest are dropped first."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, limit: int = MAX_COUNT) -> None:
        self._clock, self._most = clock, limit
        #: The moment at which each will be full again, in microseconds of the clock.
        self._full: dict[str, int] = {}

    def take(self, rates: Rates, *, only_look: bool = False) -> float:
        """Take a token from each bucket, if each has one. Returns the seconds until then; 0 = taken."""
        now, wait, full = int(self._clock() * 1e6), 0, {}
        for name, rate in rates.items():
            full[name] = max(self._full.get(name, now), now) + rate.interval
            wait = max(wait, full[name] - now - rate.span)
        if not wait and not only_look:
            self._full.update(full)
            if len(self._full) > self._most:
                emptiest = sorted(self._full.items(), key=lambda item: item[1], reverse=True)
                kept = emptiest[: self._most // 2]
                self._full = {name: full for name, full in kept if full > now}
        return wait / 1e6


class SharedBuckets:
    """Buckets in Redis, with one round trip per request. While Redis is away, local buckets replace them."""

    def __init__(self) -> None:
        self._own = LocalBuckets()
        self._retry_at = 0.0

    async def take(self, rates: Rates, *, only_look: bool = False) -> float:
        """Take a token from each bucket, as `LocalBuckets.take` does, for all processes of the host."""
        import redis  # noqa: PLC0415 - a host without Redis does not load it

        if time.monotonic() >= self._retry_at:
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    return await self._take(rates, only_look=only_look)
            except (redis.RedisError, OSError) as fault:
                self._retry_at = time.monotonic() + RETRY_SECONDS
                _away.warning(fault)
        return self._own.take(rates, only_look=only_look)

    async def _take(self, rates: Rates, *, only_look: bool) -> float:
        numbers = [0 if only_look else 1]
        for rate in rates.values():
            numbers += [rate.interval, rate.span]
        # The braces are a hash tag: on a cluster all keys are on one node.
        keys = [f"{{{pubsub.prefix()}}}:rate:{name}" for name in rates]
        client = await pubsub.connect(PATIENCE_SECONDS, retries=1)
        return int(await client.register_script(TAKE)(keys, numbers)) / 1e6
