"""The places for connections: altogether, and for one address."""

from __future__ import annotations

from collections import Counter

from a2a_tasks.access.metering import network
from a2a_tasks.conf import conf

__all__ = ["NoPlace", "Places"]

#: One place in so many is for addresses that have none: a health check gets in where one client has all that it may.
KEPT = 10


class NoPlace(Exception):
    """There is none for this connection; says why."""


class Places:
    """Taken one by one, and given back."""

    def __init__(self, most: int = 0, most_here: int = 0) -> None:
        """So many altogether, and for one address; 0 = any number."""
        self._most, self._most_here = most, most_here
        self._taken: Counter[str] = Counter()

    @classmethod
    def of_settings(cls) -> Places:
        """As the operator wants them."""
        return cls(int(conf.GRPC_CONNECTIONS), int(conf.GRPC_CONNECTIONS_PER_ADDRESS))

    def __len__(self) -> int:
        """Places that are taken."""
        return self._taken.total()

    def take(self, address: str) -> None:
        """One more from this address; of IPv6, from its subscriber's. Raises NoPlace."""
        here = network(address)
        mine = self._taken[here]
        if self._most_here and mine >= self._most_here:
            raise NoPlace(f"{here} has {mine} (A2A_GRPC_CONNECTIONS_PER_ADDRESS)")
        kept = self._most // KEPT if mine else 0
        if self._most and len(self) >= self._most - kept:
            raise NoPlace(f"{len(self)} are open (A2A_GRPC_CONNECTIONS)")
        self._taken[here] += 1

    def give_back(self, address: str) -> None:
        """One that was taken."""
        here = network(address)
        self._taken[here] -= 1
        if not self._taken[here]:
            del self._taken[here]
