"""Places for connections: counted, kept for those who have none, and given back."""

from __future__ import annotations

import pytest

from a2a_grpc.server.places import ConnectionLimits, TooManyConnections

HERE, THERE = "192.0.2.1", "192.0.2.2"


def test_one_address_has_so_many_and_they_come_back() -> None:
    places = ConnectionLimits(most_here=2)
    first, _ = [places.take(HERE) for _ in range(2)]
    with pytest.raises(
        TooManyConnections, match=r"192.0.2.1 has 2 \(A2A_GRPC_CONNECTIONS_PER_ADDRESS\)"
    ):
        places.take(HERE)
    places.take(THERE)
    first.give_back()
    first.give_back()  # changes nothing
    places.take(HERE)
    assert len(places) == 3
    with pytest.raises(TooManyConnections):
        places.take(HERE)


def test_the_last_tenth_is_for_addresses_that_have_none() -> None:
    places = ConnectionLimits(limit=10)
    for _ in range(9):
        places.take(HERE)
    with pytest.raises(TooManyConnections, match=r"9 are open \(A2A_GRPC_CONNECTIONS\)"):
        places.take(HERE)
    places.take(THERE)
    with pytest.raises(TooManyConnections):
        places.take("192.0.2.3")


def test_a_subscriber_of_ipv6_is_one_address() -> None:
    places = ConnectionLimits(most_here=1)
    places.take("2001:db8::1")
    with pytest.raises(TooManyConnections):
        places.take("2001:db8::2")
    places.take("2001:db8:0:1::1")


def test_without_bounds_there_is_always_one() -> None:
    places = ConnectionLimits()
    for place in [places.take(HERE) for _ in range(5000)]:
        place.give_back()
    assert len(places) == 0
    assert not places._taken
