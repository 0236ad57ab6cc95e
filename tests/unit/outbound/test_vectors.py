"""The way out under attack: whatever URL, whatever the resolver says, no connection is begun.

The oracle is not what the guard says but what the interpreter does: it tells of every `connect` and every look-up of a
name; and a canary listens on every address of this machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from a2a_tasks.outbound import (
    Client,
    ClientLimits,
    FaultKind,
    Guard,
    OutboundPolicy,
    Unanswered,
    make_tls_context,
)
from a2a_tasks.outbound.policy import SERVICES
from tests.support.outbound import vectors
from tests.support.outbound.canary import Canary, canary, watched

#: What a resolver may answer that is not to be called.
INSIDE = [
    "127.0.0.1",
    "127.0.0.2",
    "0.0.0.0",  # noqa: S104 - none listens
    "10.0.0.1",
    "172.16.5.4",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "168.63.129.16",
    "192.0.0.192",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::808:808",
    "2002:7f00:1::1",
    "2001:0:1::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%lo",
    "fec0::1",
    "ff02::1",
    "2001:db8::1",
    "100::1",
]
PUBLIC = ("8.8.8.8", "2606:4700::1111")
#: Made once: it reads every authority of the system.
TLS = make_tls_context()


@pytest.fixture(scope="module")
def bird() -> Iterator[Canary]:
    """Have a canary on every address of this machine, and hear at the end that it was silent."""
    with canary() as bird:
        yield bird
        assert not bird.sings


def answering(*answers: str) -> Guard:
    """A guard whose resolver gives these answers for every name, in clear too, so that only addresses are left to judge."""

    async def resolve(_name: str) -> tuple[str, ...]:
        return answers

    return Guard(OutboundPolicy.read(http=True), resolve)


async def let_out(guard: Guard, urls: Iterable[str]) -> list[str]:
    """Those of the URLs that are called, or that anything is done about: a connection, a look-up of a name."""
    client = Client(guard, tls=TLS)
    return [url for url in urls if not await refused(client, url)]


async def refused(client: Client, url: str) -> bool:
    """Is nothing done about the URL, and is it told so?"""
    with watched() as heard:
        try:
            await client.ask("POST", url, body=b"{}")
        except Unanswered as fault:
            return heard == [] and fault.kind is FaultKind.ADDRESS
    return False


class TestNoConnectionIsBegun:
    """Each class of vectors is one test; a failure lists those of its URLs that got out."""

    @pytest.mark.parametrize("name", ["v4_spellings", "v4_networks", "v6", "hosts"])
    async def test_to_an_address_inside_however_it_is_written(
        self, name: str, bird: Canary
    ) -> None:
        urls = [url.replace("PORT", str(bird.port)) for url in vectors.ALL[name]]
        assert await let_out(answering("127.0.0.1", "::1"), urls) == []

    @pytest.mark.parametrize("name", ["schemes", "ports", "injections"])
    async def test_to_anything_but_the_web(self, name: str, bird: Canary) -> None:
        """The names lead to public addresses, so it is not for those that they are refused."""
        urls = [url.replace("PORT", str(bird.port)) for url in vectors.ALL[name]]
        assert await let_out(answering("8.8.8.8"), urls) == []

    @pytest.mark.parametrize("public", [*PUBLIC, ""])
    async def test_to_a_name_with_an_address_inside(self, public: str, bird: Canary) -> None:
        """Alone, or beside a public one, whichever comes first and of whichever family."""
        url = f"https://public.example:{bird.port}/"
        for inside in INSIDE:
            answers = [answer for answer in (public, inside) if answer]
            assert await let_out(answering(*answers), [url]) == [], answers
            assert await let_out(answering(*reversed(answers)), [url]) == [], answers

    @pytest.mark.parametrize("name", ["v4_spellings", "v4_networks", "v6", "hosts"])
    async def test_in_clear_unless_that_is_allowed(self, name: str) -> None:
        guard = Guard(OutboundPolicy.read(), lambda _: pytest.fail("a name was asked for"))
        assert (
            await let_out(guard, (url.replace("PORT", "8080") for url in vectors.ALL[name])) == []
        )


class TestTheTables:
    def test_have_more_than_four_hundred_vectors(self) -> None:
        assert sum(map(len, vectors.ALL.values())) + len(INSIDE) * len(PUBLIC) * 2 >= 800

    def test_know_every_closed_port_that_is_a_test_of_its_own(self) -> None:
        assert set(vectors.SERVICE_PORTS) <= SERVICES

    async def test_are_refused_for_a_reason(self, bird: Canary) -> None:
        """The canary does sing, and the ear hears, if the guard is told to let a call through."""
        with canary() as other, watched() as heard:
            guard = Guard(OutboundPolicy.read(http=True, allowed="127.0.0.1"))
            client = Client(guard, limits=ClientLimits(total=0.5), tls=TLS)
            with pytest.raises(Unanswered) as caught:
                await client.ask("POST", f"http://127.0.0.1:{other.port}/")
            await client.close()
            assert caught.value.kind is FaultKind.TIMEOUT
            assert other.sings
            assert heard == [("socket.connect", ("127.0.0.1", other.port))]
