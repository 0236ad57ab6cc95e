"""The limits on connections: for all, and for one address."""

from __future__ import annotations

from collections import Counter

from a2a_tasks.access.rate_limits import network
from a2a_tasks.conf import conf

__all__ = ["ConnectionLimits", "ConnectionSlot", "TooManyConnections"]

#: One place in this many is reserved for addresses without connections: a health check gets in at one client's limit.
KEPT = 10


class TooManyConnections(Exception):
    """No place is left for this connection; the text gives the reason."""


class ConnectionLimits:
    """The counts of open connections, and their limits."""

    def __init__(self, limit: int = 0, most_here: int = 0) -> None:
        """The limits for all connections, and for those of one address; 0 = any number."""
        self._most, self._most_here = limit, most_here
        self._taken: Counter[str] = Counter()

    @classmethod
    def of_settings(cls) -> ConnectionLimits:
        """Return the limits of the settings."""
        return cls(int(conf.GRPC_CONNECTIONS), int(conf.GRPC_CONNECTIONS_PER_ADDRESS))

    def __len__(self) -> int:
        """Return the number of open connections."""
        return self._taken.total()

    def take(self, address: str) -> ConnectionSlot:
        """Count a connection from this address (IPv6: from its subscriber's network). Raises TooManyConnections."""
        here = network(address)
        mine = self._taken[here]
        if self._most_here and mine >= self._most_here:
            raise TooManyConnections(f"{here} has {mine} (A2A_GRPC_CONNECTIONS_PER_ADDRESS)")
        kept = self._most // KEPT if mine else 0
        if self._most and len(self) >= self._most - kept:
            raise TooManyConnections(f"{len(self)} are open (A2A_GRPC_CONNECTIONS)")
        self._taken[here] += 1
        return ConnectionSlot(self, here)

    def _release(self, here: str) -> None:
        self._taken[here] -= 1
        if not self._taken[here]:
            del self._taken[here]


class ConnectionSlot:
    """The place of one connection."""

    def __init__(self, limits: ConnectionLimits, here: str) -> None:
        self._limits, self._here, self._held = limits, here, True

    def give_back(self) -> None:
        """Release the place; later calls do nothing."""
        if self._held:
            self._held = False
            self._limits._release(self._here)  # noqa: SLF001 - of the same module
