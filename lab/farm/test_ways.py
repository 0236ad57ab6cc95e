"""The farm's receivers do what the table says they do: the sender itself is asked."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from a2a_push.envelope import PreparedRequest
from a2a_push.sender import AttemptRefused, Delivered, Sender
from a2a_tasks.outbound import (
    Client,
    ClientLimits,
    FaultKind,
    Guard,
    NameNotResolved,
    OutboundPolicy,
)
from lab.farm.server import PORTS, Farm, Place, opened
from lab.farm.ways import WAYS, Ends, Way
from lab.faultlab.history import Record, read
from tests.support.ports import free_ports

LIMIT = 1.0
MESSAGE_ID = ("webhook-id", "msg_1")
HEADERS = (("Content-Type", "application/json"), MESSAGE_ID, ("webhook-timestamp", "1"))
BODY = b'{"statusUpdate":{"taskId":"t-1"}}'
#: What is wrong at the first attempt, where that is not a status.
KINDS = {
    2: FaultKind.TIMEOUT,
    3: FaultKind.TIMEOUT,
    4: FaultKind.TIMEOUT,
    5: FaultKind.TIMEOUT,
    6: FaultKind.TIMEOUT,
    11: FaultKind.TOO_LARGE,
    12: FaultKind.TOO_LARGE,
    13: FaultKind.PROTOCOL,
    14: FaultKind.PROTOCOL,
    28: FaultKind.TOO_LARGE,
    29: FaultKind.TIMEOUT,
    30: FaultKind.TLS,
    31: FaultKind.TLS,
    32: FaultKind.TLS,
    33: FaultKind.TLS,
    34: FaultKind.DNS,
}
#: Kinds that say yes to begin with, or at the first attempt already.
ACCEPTED = {way.number for way in WAYS.values() if way.ends in {Ends.DELIVERED, Ends.REMOVED}}
AT_ONCE = ACCEPTED - {18, 19, 20, 21}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Where a farm may be."""
    ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
    return Place(directory=str(tmp_path), ports=ports, limit=LIMIT, webs=["http://127.0.0.1:9"])


@pytest.fixture
async def farm(place: Place) -> AsyncIterator[Farm]:
    """It is open."""
    async with opened(place) as found:
        yield found


async def resolve(name: str) -> Sequence[str]:
    if name.startswith(("nxdomain", "servfail", "timeout")):
        raise NameNotResolved(name)
    return ("127.0.0.1",)


@pytest.fixture
def seconds() -> float:
    """How long the sender waits for a connection, and for an answer."""
    return LIMIT


@pytest.fixture
async def sender(farm: Farm, place: Place, seconds: float) -> AsyncIterator[Sender]:
    """The host's, for receivers of the farm."""
    tls = ssl.create_default_context(cafile=str(Path(place.directory) / "authority.pem"))
    policy = OutboundPolicy.read(allowed=".farm.test", http=True)
    limits = ClientLimits(connect=seconds, total=seconds)
    made = Sender(Client(Guard(policy, resolve), limits=limits, tls=tls))
    yield made
    await made.close()


def arrivals(place: Place) -> list[Record]:
    return read(Path(place.directory) / "arrivals.jsonl")


async def outcomes(way: Way, place: Place, sender: Sender, times: int = 1) -> list[Any]:
    """What came of the last of so many attempts at each variant."""
    for _ in range(times):
        found = [
            await sender.send(PreparedRequest(f"{url}?tag=t&agent=farm-tell", HEADERS, BODY))
            for url in way.urls(place.ports)
        ]
    return found


def test_there_are_thirty_six() -> None:
    assert sorted(WAYS) == list(range(1, 37))


@pytest.mark.parametrize("number", sorted(KINDS))
async def test_who_gives_no_answer_is_refused_for_what_it_does(
    number: int, place: Place, sender: Sender
) -> None:
    for outcome in await outcomes(WAYS[number], place, sender):
        assert isinstance(outcome, AttemptRefused)
        assert outcome.kind is KINDS[number]


# One says yes shortly before the limit: on a busy machine that may be after it.
@pytest.mark.parametrize("seconds", [4 * LIMIT])
@pytest.mark.parametrize("number", sorted(AT_ONCE))
async def test_who_says_yes_has_it(number: int, place: Place, sender: Sender) -> None:
    found = await outcomes(WAYS[number], place, sender)
    assert [type(outcome) for outcome in found] == [Delivered] * len(found)
    answers = [record["status"] for record in arrivals(place) if record.what == "answered"]
    assert answers == [outcome.status for outcome in found]


@pytest.mark.parametrize("number", [17, 23, 24, 25, 26])
async def test_who_says_no_says_it_every_time(number: int, place: Place, sender: Sender) -> None:
    for outcome in await outcomes(WAYS[number], place, sender, times=3):
        assert isinstance(outcome, AttemptRefused)
        assert outcome.kind is FaultKind.STATUS
    assert not any(record.what == "intruded" for record in arrivals(place))


@pytest.mark.parametrize(("number", "times"), [(18, 5), (19, 2), (20, 2), (21, 15)])
async def test_who_says_no_at_first_says_yes_in_the_end(
    number: int, times: int, place: Place, sender: Sender
) -> None:
    (first, *_) = await outcomes(WAYS[number], place, sender)
    assert isinstance(first, AttemptRefused)
    assert (first.retry_after is not None) is (number != 18)
    for outcome in await outcomes(WAYS[number], place, sender, times=times):
        assert isinstance(outcome, Delivered)


async def test_what_comes_is_written_down_whole(place: Place, sender: Sender) -> None:
    headers = (*HEADERS, ("webhook-signature", "v1,x"), ("X-A2A-Notification-Token", "tok"))
    url = f"http://receiver.farm.test:{place.ports['http']}/e/7?tag=t-7"
    assert isinstance(await sender.send(PreparedRequest(url, headers, BODY)), Delivered)
    arrived, answered = arrivals(place)
    assert (arrived["id"], arrived["tag"], arrived["path"]) == ("msg_1", "t-7", "/e/7")
    assert (arrived["signature"], arrived["token"]) == ("v1,x", "tok")
    assert arrived["body"].encode() == BODY
    assert (answered["id"], answered["status"]) == ("msg_1", 200)


async def test_whoever_comes_to_the_canary_is_told_of(place: Place, sender: Sender) -> None:
    url = f"http://receiver.farm.test:{place.ports['canary']}/"
    await sender.send(PreparedRequest(url, HEADERS, BODY))
    assert [record.what for record in arrivals(place)] == ["intruded"]
