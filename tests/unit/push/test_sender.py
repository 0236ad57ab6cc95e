"""What comes of a delivery, whatever the receiver does: one outcome, in time, and with little memory."""

from __future__ import annotations

import asyncio
import random
import ssl
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import uvloop
from pytest_django import Settings

from a2a_push.envelope import PreparedRequest
from a2a_push.sender import AttemptRefused, Delivered, Outcome, Sender
from a2a_tasks.outbound import (
    Client,
    ClientLimits,
    FaultKind,
    Guard,
    OutboundPolicy,
    make_tls_context,
)
from tests.support.outbound.canary import canary, watched
from tests.support.push import receivers
from tests.support.push.receivers import NAME, Authority, Farm

#: The one address of this machine that these tests take for a public one.
OPEN = "127.0.0.1/32"
NOW = 1_800_000_000.0
JSON = (("Content-Type", "application/json"),)


def request_to(
    url: str, headers: tuple[tuple[str, str], ...] = JSON, body: bytes = b'{"task":1}'
) -> PreparedRequest:
    """What is sent."""
    return PreparedRequest(url, headers, body)


class Names:
    """A resolver whose answers can be changed, and that counts."""

    def __init__(self, *answers: str) -> None:
        self.answers = answers
        self.asked = 0

    async def __call__(self, name: str) -> tuple[str, ...]:
        self.asked += 1
        return self.answers


def sending(
    *, total: float = 20.0, connect: float = 20.0, names: Names | None = None, bundle: str = ""
) -> Sender:
    """A sender that may call this machine at one address, in clear too."""
    guard = Guard(OutboundPolicy.read(http=True, allowed=OPEN), names or Names("127.0.0.1"))
    limits = ClientLimits(connect=connect, total=total)
    return Sender(Client(guard, limits=limits, tls=make_tls_context(bundle)), now=lambda: NOW)


@pytest.fixture
async def farm() -> AsyncIterator[Farm]:
    """Have receivers."""
    async with receivers.farm() as made:
        yield made


@pytest.fixture
async def sender() -> AsyncIterator[Sender]:
    """Have a sender with time enough."""
    async with closing(sending()) as made:
        yield made


@asynccontextmanager
async def closing(made: Sender) -> AsyncIterator[Sender]:
    """Close it in the end."""
    try:
        yield made
    finally:
        await made.close()


#: Paths whose receivers take what they are sent: the status, and what is kept of the answer.
TAKEN = {
    "/ok": (200, "thanks"),
    "/status?201": (201, "words"),
    "/status?202": (202, "words"),
    "/status?204": (204, ""),
    "/status?299": (299, "words"),
    "/chunked": (200, "abcdefg"),
    "/till-the-end": (200, "abc"),
    "/interim-then-ok": (200, ""),
    "/more-than-was-asked": (200, "first"),
    "/closes-later": (200, "bye"),
    # A head that came in time is an answer, whatever becomes of the body: it is for the operator's eyes only.
    "/endless-body": (200, "x" * 1024),
    "/endless-chunks": (200, "x" * 1024),
    "/endless-chunk-size": (200, ""),
    "/closes-after-the-head": (200, ""),
    "/resets-within-the-body": (200, "some"),
}
#: Paths whose receivers give no answer that is one.
BROKEN = {
    "/endless-headers": FaultKind.TOO_LARGE,
    "/one-large-header": FaultKind.TOO_LARGE,
    "/invalid-status-line": FaultKind.PROTOCOL,
    "/another-protocol": FaultKind.PROTOCOL,
    "/http-0-9": FaultKind.PROTOCOL,
    "/invalid-header": FaultKind.PROTOCOL,
    "/two-lengths": FaultKind.PROTOCOL,
    "/huge-length": FaultKind.PROTOCOL,
    "/closes-at-once": FaultKind.CLOSED,
    "/resets-at-once": FaultKind.CLOSED,
    "/closes-within-the-head": FaultKind.PROTOCOL,
    "/interim-flood": FaultKind.TOO_LARGE,
    "/switches-protocols": FaultKind.PROTOCOL,
}


#: Paths whose receivers are heard for as long as a delivery may take.
ENDLESS = {"/endless-chunk-size"}
POST_END = b'{"task":1}'
ANSWERS = (
    b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 X\r\nRetry-After: 120\r\nConnection: close\r\n\r\nlater",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nX: y\r\n\r\n",
)


def mutated(chance: random.Random) -> bytes:
    """An answer that is not quite one."""
    text = bytearray(chance.choice(ANSWERS))
    for _ in range(chance.randrange(4)):
        at = chance.randrange(len(text))
        junk = chance.choice((b"", b"\r\n", b"\x00", b"9" * 25, b":", b" ", chance.randbytes(3)))
        text[at : at + chance.randrange(3)] = junk
    return bytes(text)


class TestADelivery:
    @pytest.mark.parametrize("path", TAKEN)
    async def test_is_taken_by_whoever_answers_2xx(self, path: str, farm: Farm) -> None:
        async with closing(sending(total=3.0 if path in ENDLESS else 20.0)) as sender:
            outcome = await sender.send(request_to(farm.url(path)))
        assert isinstance(outcome, Delivered), outcome
        assert (outcome.status, outcome.excerpt) == TAKEN[path]
        assert 0 < outcome.seconds < 20

    @pytest.mark.parametrize("path", BROKEN)
    async def test_without_an_answer_is_refused(self, path: str, farm: Farm) -> None:
        async with closing(sending(total=1.0 if path in ENDLESS else 20.0)) as sender:
            outcome = await sender.send(request_to(farm.url(path)))
        assert isinstance(outcome, AttemptRefused), outcome
        assert (outcome.kind, outcome.status, outcome.excerpt) == (BROKEN[path], None, "")
        assert outcome.detail.isprintable()
        assert len(outcome.detail) <= 200
        assert len(farm.seen) == 1

    @pytest.mark.parametrize("path", ["/huge-chunk", "/endless-trailers"])
    async def test_whose_answer_breaks_with_its_head_may_be_taken_or_not(
        self, path: str, farm: Farm, sender: Sender
    ) -> None:
        """It depends on whether both come in one piece."""
        outcome = await sender.send(request_to(farm.url(path)))
        taken = isinstance(outcome, Delivered) and outcome.status == 200
        assert taken or outcome.kind in {FaultKind.PROTOCOL, FaultKind.TOO_LARGE}  # type: ignore[union-attr]

    @pytest.mark.parametrize(
        "status", [300, 304, 400, 401, 403, 404, 408, 409, 410, 413, 429, 500, 502, 503, 504, 599]
    )
    async def test_with_another_status_is_refused(
        self, status: int, farm: Farm, sender: Sender
    ) -> None:
        outcome = await sender.send(request_to(farm.url(f"/status?{status}")))
        assert isinstance(outcome, AttemptRefused)
        assert (outcome.kind, outcome.status) == (FaultKind.STATUS, status)
        assert outcome.excerpt == ("" if status == 304 else "words")
        assert outcome.retry_after is None

    @pytest.mark.parametrize("path", ["/never-answers", "/head-by-bytes"])
    async def test_that_is_never_answered_ends_in_time(self, path: str, farm: Farm) -> None:
        async with closing(sending(total=0.5)) as sender:
            outcome = await sender.send(request_to(farm.url(path)))
        assert isinstance(outcome, AttemptRefused)
        assert (outcome.kind, outcome.status) == (FaultKind.TIMEOUT, None)
        assert outcome.seconds >= 0.5

    async def test_with_a_body_that_never_ends_is_as_good_as_its_head(self, farm: Farm) -> None:
        async with closing(sending(total=2.0)) as sender:
            outcome = await sender.send(request_to(farm.url("/body-by-bytes")))
        assert isinstance(outcome, Delivered)
        assert set(outcome.excerpt) == {"x"}
        assert outcome.seconds >= 2.0

    async def test_is_a_post_with_what_was_prepared(self, farm: Farm, sender: Sender) -> None:
        headers = (("Content-Type", "application/a2a+json"), ("webhook-id", "m-1"), ("X-É", " ü "))
        body = b"\x00\xff" * 1000
        assert isinstance(
            await sender.send(request_to(farm.url("/status?400&a=b#c"), headers[:2], body)),
            AttemptRefused,
        )
        (seen,) = farm.seen
        assert seen.line == "POST /status?400&a=b HTTP/1.1"
        assert seen.body == body
        assert dict(seen.headers) == {
            "host": f"127.0.0.1:{farm.port}",
            "accept-encoding": "identity",
            "content-length": "2000",
            "user-agent": "a2a-host",
            "content-type": "application/a2a+json",
            "webhook-id": "m-1",
        }

    @pytest.mark.parametrize(
        "name",
        [
            *("Host", "hOST", "Content-Length", "Transfer-Encoding", "Connection", "Expect"),
            *("Accept-Encoding", "Proxy-Authorization", "TE", "Trailer", "Upgrade", "Keep-Alive"),
            *("Proxy-Authenticate", "Proxy-Connection"),
        ],
    )
    async def test_keeps_the_connection_to_itself(
        self, name: str, farm: Farm, sender: Sender
    ) -> None:
        """Headers come from clients (seed-0 registers any): none may say whom or how we talk to."""
        outcome = await sender.send(request_to(farm.url("/ok"), ((name, "100-continue"),)))
        assert isinstance(outcome, Delivered)
        (seen,) = farm.seen
        assert "100-continue" not in dict(seen.headers).values()
        assert seen.header("host") == [f"127.0.0.1:{farm.port}"]

    @pytest.mark.parametrize(
        "header",
        [("X", "a\r\nY: b"), ("X", "a\nb"), ("X", "a\x00b"), ("X Y", "a"), ("", "a"), ("X:", "a")],
    )
    async def test_that_would_begin_another_header_is_not_sent(
        self, header: tuple[str, str], farm: Farm, sender: Sender
    ) -> None:
        outcome = await sender.send(request_to(farm.url("/ok"), (header,)))
        assert isinstance(outcome, AttemptRefused)
        assert (outcome.kind, outcome.detail) == (FaultKind.REQUEST, "a header cannot be sent")
        assert farm.seen == []

    async def test_is_not_decompressed(self, farm: Farm, sender: Sender) -> None:
        outcome = await sender.send(request_to(farm.url("/gzip-bomb")))
        assert isinstance(outcome, Delivered)
        assert len(outcome.excerpt) <= 1024
        assert "\x00" not in outcome.excerpt

    async def test_shows_no_secret_that_comes_back(self, farm: Farm, sender: Sender) -> None:
        headers = (
            ("Authorization", "Bearer credentials-91bc"),
            ("X-A2A-Notification-Token", "token-7f3a"),
            ("Content-Type", "application/json"),
        )
        outcome = await sender.send(request_to(farm.url("/echo"), headers))
        assert isinstance(outcome, AttemptRefused)
        assert "application/json" in outcome.excerpt
        assert "credentials-91bc" not in outcome.excerpt
        assert "token-7f3a" not in outcome.excerpt

    async def test_shows_no_credentials_that_come_back_without_their_scheme(
        self, sender: Sender
    ) -> None:
        async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(POST_END)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\ncredentials-91bc")

        headers = (("Authorization", "Bearer credentials-91bc"),)
        async with receivers.serving(answers) as port:
            outcome = await sender.send(request_to(f"http://127.0.0.1:{port}/", headers))
        assert outcome.excerpt == "[hidden]"

    async def test_shows_no_part_of_a_secret_where_the_excerpt_ends(
        self, farm: Farm, sender: Sender
    ) -> None:
        headers = (("Authorization", "Bearer credentials-91bc"),)
        outcome = await sender.send(request_to(farm.url("/echo-late"), headers))
        assert isinstance(outcome, Delivered)
        assert outcome.excerpt == "x" * 1015 + "[hidden]"

    async def test_has_an_outcome_whatever_bytes_come(self, sender: Sender) -> None:
        """Answers with a few bytes changed, left out or put in, by a seed."""
        chance = random.Random(91)  # noqa: S311 - a seed
        bytes_sent: list[bytes] = []

        async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(POST_END)
            writer.write(bytes_sent[-1])

        async with receivers.serving(answers) as port:
            for _ in range(400):
                bytes_sent.append(mutated(chance))
                outcome = await sender.send(request_to(f"http://127.0.0.1:{port}/"))
                assert isinstance(outcome, Delivered | AttemptRefused), bytes_sent[-1]

    async def test_goes_beside_hundreds_of_others(self, farm: Farm, sender: Sender) -> None:
        outcomes = await asyncio.gather(
            *(sender.send(request_to(farm.url("/ok"))) for _ in range(300)),
            *(sender.send(request_to(farm.url("/status?500"))) for _ in range(100)),
        )
        assert [type(outcome) for outcome in outcomes] == [Delivered] * 300 + [AttemptRefused] * 100
        assert len(farm.seen) == 400


class TestAReceiver:
    async def test_at_whose_port_nobody_listens(self, sender: Sender) -> None:
        with receivers.nobody() as port:
            outcome = await sender.send(request_to(f"http://127.0.0.1:{port}/"))
        assert isinstance(outcome, AttemptRefused)
        assert outcome.kind is FaultKind.CONNECT

    async def test_that_is_full(self) -> None:
        with receivers.full() as port:
            async with closing(sending(connect=0.3)) as sender:
                outcome = await sender.send(request_to(f"http://127.0.0.1:{port}/"))
        assert isinstance(outcome, AttemptRefused)
        assert (outcome.kind, outcome.detail) == (FaultKind.TIMEOUT, "no connection in time")

    @pytest.mark.parametrize("size", [10, 8 * 1024 * 1024])
    async def test_that_never_accepts_nor_reads(self, size: int) -> None:
        with receivers.deaf() as port:
            async with closing(sending(total=0.5)) as sender:
                outcome = await sender.send(
                    request_to(f"http://127.0.0.1:{port}/", body=b"x" * size)
                )
        assert isinstance(outcome, AttemptRefused)
        assert (outcome.kind, outcome.detail) == (FaultKind.TIMEOUT, "no answer in time")

    async def test_that_sends_a_hundred_megabytes_costs_less_than_one(self, sender: Sender) -> None:
        async with receivers.flooding(100 * 1024 * 1024) as port:
            post = request_to(f"http://127.0.0.1:{port}/")
            tracemalloc.start()
            try:
                outcome = await sender.send(post)
                _, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
        assert isinstance(outcome, Delivered)
        assert outcome.excerpt == "\ufffd" * 1024
        assert peak < 1024 * 1024

    @pytest.mark.parametrize("path", ["/endless-headers", "/interim-flood"])
    async def test_that_never_ends_costs_less_than_a_megabyte(self, path: str, farm: Farm) -> None:
        """The receiver's own memory is in it."""
        async with closing(sending(total=2.0)) as sender:
            await sender.send(request_to(farm.url("/ok")))
            tracemalloc.start()
            try:
                await sender.send(request_to(farm.url(path)))
                _, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
        assert peak < 2 * 1024 * 1024


class TestARedirect:
    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    @pytest.mark.parametrize(
        "location",
        [
            "http://127.0.0.1:{canary}/",
            "http://127.0.0.2:{canary}/",
            "http://169.254.169.254/latest/meta-data/",
            "//127.0.0.1:{canary}/",
            "https://public.example/",
            "/ok",
        ],
    )
    async def test_is_not_followed(
        self, status: int, location: str, farm: Farm, sender: Sender
    ) -> None:
        with canary() as bird, watched() as heard:
            to = location.format(canary=bird.port)
            outcome = await sender.send(request_to(farm.url(f"/status?{status}&Location={to}")))
            assert isinstance(outcome, AttemptRefused)
            assert (outcome.kind, outcome.status) == (FaultKind.STATUS, status)
            assert heard == [("socket.connect", ("127.0.0.1", farm.port))]
            assert len(farm.seen) == 1
            assert not bird.sings


class TestAName:
    async def test_is_resolved_once_for_each_delivery_and_judged_each_time(
        self, farm: Farm
    ) -> None:
        """Rebinding: public when it was looked at, private when it is called. There is no second look, and no cached one."""
        names = Names("127.0.0.1")
        post = request_to(farm.url("/ok", "flips.example"))
        async with closing(sending(names=names)) as sender:
            assert isinstance(await sender.send(post), Delivered)
            assert names.asked == 1
            for answers in (("127.0.0.2",), ("127.0.0.1", "::1"), ("169.254.169.254",)):
                names.answers = answers
                with watched() as heard:
                    outcome = await sender.send(post)
                assert isinstance(outcome, AttemptRefused)
                assert outcome.kind is FaultKind.ADDRESS
                assert heard == []
        assert (names.asked, len(farm.seen)) == (4, 1)
        assert farm.seen[0].header("host") == [f"flips.example:{farm.port}"]

    async def test_that_moves_gets_a_new_connection(self) -> None:
        """An idle one, to where it was, is not used."""
        names = Names("127.0.0.1")
        guard = Guard(OutboundPolicy.read(http=True, allowed="127.0.0.0/8"), names)
        client = Client(guard, tls=make_tls_context())
        async with receivers.farm() as farm, closing(Sender(client)) as sender:
            post = request_to(farm.url("/ok", "moves.example"))
            assert isinstance(await sender.send(post), Delivered)
            names.answers = ("127.0.0.9",)
            outcome = await sender.send(post)
        assert isinstance(outcome, AttemptRefused)
        assert outcome.kind is FaultKind.CONNECT

    async def test_without_addresses_is_not_called(self, farm: Farm) -> None:
        async with closing(sending(names=Names())) as sender:
            outcome = await sender.send(request_to(farm.url("/ok", "gone.example")))
        assert isinstance(outcome, AttemptRefused)
        assert outcome.kind is FaultKind.DNS

    async def test_that_nobody_resolves_in_time_is_not_called(self) -> None:
        async def never(_name: str) -> tuple[str, ...]:
            await asyncio.Event().wait()
            return ()

        guard = Guard(OutboundPolicy.read(), never)
        sender = Sender(Client(guard, limits=ClientLimits(total=0.05), tls=make_tls_context()))
        outcome = await sender.send(request_to("https://slow.example/"))
        assert isinstance(outcome, AttemptRefused)
        assert outcome.kind is FaultKind.DNS

    async def test_is_reached_at_the_address_that_answers(self, farm: Farm) -> None:
        names = Names("::1", "127.0.0.1")
        guard = Guard(OutboundPolicy.read(http=True, allowed="127.0.0.1,::1"), names)
        sender = Sender(Client(guard, tls=make_tls_context()))
        async with closing(sender):
            outcome = await sender.send(request_to(farm.url("/ok", "two.example")))
        assert isinstance(outcome, Delivered)


@pytest.mark.thorough
def test_the_other_event_loop_makes_no_difference(authority: Authority) -> None:
    """uvicorn's web processes run on uvloop, whose transports are of other classes."""

    async def outcomes(tls: ssl.SSLContext | None) -> dict[str, FaultKind | tuple[int, str]]:
        paths = [*TAKEN, *BROKEN]
        trusting_it = sending(total=2.0, bundle=str(authority.path))
        async with receivers.farm(tls) as farm, closing(trusting_it) as sender:
            found = [await sender.send(request_to(farm.url(path, NAME))) for path in paths]
        return {path: essence(outcome) for path, outcome in zip(paths, found, strict=True)}

    def essence(outcome: Outcome) -> FaultKind | tuple[int, str]:
        return (
            outcome.kind
            if isinstance(outcome, AttemptRefused)
            else (outcome.status, outcome.excerpt)
        )

    for tls in (None, authority.server()):
        assert uvloop.run(outcomes(tls)) == TAKEN | BROKEN


class TestConnections:
    async def test_are_used_again(self, farm: Farm, sender: Sender) -> None:
        for path in ("/ok", "/status?500", "/chunked", "/status?204", "/ok"):
            await sender.send(request_to(farm.url(path)))
        assert (farm.connections, len(farm.seen)) == (1, 5)

    @pytest.mark.parametrize(
        "path", ["/more-than-was-asked", "/till-the-end", "/endless-body", "/closes-after-the-head"]
    )
    async def test_are_not_after_such_an_answer(
        self, path: str, farm: Farm, sender: Sender
    ) -> None:
        await sender.send(request_to(farm.url(path)))
        outcome = await sender.send(request_to(farm.url("/ok")))
        assert isinstance(outcome, Delivered)
        assert outcome.excerpt == "thanks"
        assert farm.connections == 2

    async def test_that_were_closed_meanwhile_cost_no_delivery(
        self, farm: Farm, sender: Sender
    ) -> None:
        for _ in range(20):
            assert isinstance(await sender.send(request_to(farm.url("/closes-later"))), Delivered)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Have an authority that the sender trusts."""
    return Authority(tmp_path_factory.mktemp("authority"))


class TestTls:
    async def outcome(self, authority: Authority, server: ssl.SSLContext, host: str) -> Outcome:
        """What comes of a delivery to this server, called by this name."""
        async with receivers.farm(server) as farm:
            sender = sending(bundle=str(authority.path))
            async with closing(sender):
                return await sender.send(request_to(farm.url("/ok", host)))

    async def test_with_the_right_name_is_spoken(self, authority: Authority) -> None:
        assert isinstance(await self.outcome(authority, authority.server(), NAME), Delivered)

    @pytest.mark.parametrize(
        ("make", "host"),
        [
            (lambda authority: authority.server(trusted=False), NAME),
            (lambda authority: authority.server("other.example"), NAME),
            (lambda authority: authority.server(days=-1), NAME),
            (lambda authority: authority.server(), "127.0.0.1"),
            (lambda authority: receivers.old(authority.server()), NAME),
        ],
        ids=["self-signed", "wrong name", "expired", "by number", "TLS 1.0"],
    )
    async def test_is_refused(
        self, make: Callable[[Authority], ssl.SSLContext], host: str, authority: Authority
    ) -> None:
        outcome = await self.outcome(authority, make(authority), host)
        assert isinstance(outcome, AttemptRefused)
        assert (outcome.kind, outcome.status) == (FaultKind.TLS, None)

    async def test_is_not_spoken_with_whom_the_system_does_not_know(
        self, authority: Authority
    ) -> None:
        async with receivers.farm(authority.server()) as farm, closing(sending()) as sender:
            outcome = await sender.send(request_to(farm.url("/ok", NAME)))
        assert isinstance(outcome, AttemptRefused)
        assert outcome.kind is FaultKind.TLS

    async def test_is_refused_where_the_other_side_speaks_something_else(self) -> None:
        async with receivers.greeting() as port, closing(sending()) as sender:
            outcome = await sender.send(request_to(f"https://127.0.0.1:{port}/"))
        assert isinstance(outcome, AttemptRefused)
        assert outcome.kind is FaultKind.TLS

    async def test_that_never_begins_ends_in_time(self) -> None:
        with receivers.deaf() as port:
            async with closing(sending(connect=0.3)) as sender:
                outcome = await sender.send(request_to(f"https://127.0.0.1:{port}/"))
        assert isinstance(outcome, AttemptRefused)
        assert (outcome.kind, outcome.detail) == (FaultKind.TIMEOUT, "no connection in time")


class TestRetryAfter:
    @pytest.mark.parametrize("status", [429, 503])
    @pytest.mark.parametrize(
        ("asked", "seconds"),
        [
            ("120", 120),
            ("Fri,+15+Jan+2027+08:01:00+GMT", 60),
            ("Fri,+15+Jan+2027+03:01:00+-0500", 60),
            ("9" * 400, 86_400),
            ("soon", None),
        ],
    )
    async def test_is_heard(
        self, status: int, asked: str, seconds: float | None, farm: Farm, sender: Sender
    ) -> None:
        outcome = await sender.send(request_to(farm.url(f"/status?{status}&Retry-After={asked}")))
        assert isinstance(outcome, AttemptRefused)
        assert outcome.retry_after == seconds


class TestTheSettings:
    @pytest.fixture(autouse=True)
    def proxies(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Have proxies in the environment, which are none of ours."""
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, "http://127.0.0.1:1")
            monkeypatch.setenv(name.upper(), "http://127.0.0.1:1")

    async def test_refuse_this_machine_by_default(self, farm: Farm) -> None:
        with watched() as heard:
            outcome = await Sender().send(request_to(farm.url("/ok")))
        assert isinstance(outcome, AttemptRefused)
        assert outcome.kind is FaultKind.ADDRESS
        assert heard == []

    async def test_open_loopback_for_development(self, farm: Farm, settings: Settings) -> None:
        settings.A2A_WEBHOOK_ALLOW_PRIVATE = True
        sender = Sender()
        for host in ("127.0.0.1", "localhost"):
            assert isinstance(await sender.send(request_to(farm.url("/ok", host))), Delivered)
        await sender.close()

    async def test_limit_the_time(self, farm: Farm, settings: Settings) -> None:
        settings.A2A_WEBHOOK_ALLOW_PRIVATE = True
        settings.A2A_WEBHOOK_SECONDS = 0.3
        begun = time.monotonic()
        async with closing(Sender()) as sender:
            outcome = await sender.send(request_to(farm.url("/never-answers")))
        assert isinstance(outcome, AttemptRefused)
        assert outcome.kind is FaultKind.TIMEOUT
        assert time.monotonic() - begun >= 0.3
