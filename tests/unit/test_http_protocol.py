"""uvicorn's connection reads each request as it is, however its bytes arrive, and answers in order."""

from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn

from a2a_project import http_protocol
from a2a_project.http_protocol import HttpProtocol
from a2a_project.server import uvicorn_options
from a2a_tasks.bindings import unread
from a2a_tasks.bindings.byte_quota import ByteQuota
from tests.support.listeners import close_listener

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from pytest_django import Settings

CARD = b"GET /card HTTP/1.1\r\nHost: h\r\n\r\n"
OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
BAD = b"BAD\r\n\r\n"
LAST = b"GET /last HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"


def post(body: bytes, lines: bytes = b"") -> bytes:
    """A request whose body is `body`."""
    head = b"POST /post HTTP/1.1\r\nHost: h\r\n" + lines
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


class Wire(asyncio.Transport):
    """The connection's other end, in memory: each piece arrives alone."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.sent, self.ended = b"", asyncio.Event()
        self.unsent = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.ended.is_set(), "written after the end"
        self.sent += data

    def write_eof(self) -> None:
        self.ended.set()

    def close(self) -> None:
        self.ended.set()

    def is_closing(self) -> bool:
        return self.ended.is_set()

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def abort(self) -> None:
        self.ended.set()

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...


class Server:
    """An application that answers each request with its path and body, when `go` is set."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, bytes]] = []
        self.go = asyncio.Event()
        self.go.set()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body, more = body + message["body"], message["more_body"]
        self.requests.append((scope["path"], body))
        await self.go.wait()
        answer = scope["path"].encode()
        headers = [(b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    async def exchange(self, pieces: Sequence[bytes], release: bool = True) -> bytes:
        """What the server sends to who sends these pieces, until the connection ends."""
        options = uvicorn_options() | {"lifespan": "off", "log_config": None, "access_log": False}
        config = uvicorn.Config(self, **options)
        config.load()
        wire = Wire()
        protocol = HttpProtocol(config, uvicorn.server.ServerState(), {})
        protocol.connection_made(wire)
        for piece in pieces:
            protocol.data_received(piece)
            await asyncio.sleep(0)
        if release:
            self.go.set()
        await asyncio.wait_for(wire.ended.wait(), 30)
        protocol.connection_lost(None)
        return wire.sent


def codes(sent: bytes) -> list[bytes]:
    """The status codes of the answers."""
    return re.findall(rb"HTTP/1.1 (\d+)", sent)


class TestARequestIsReadWhole:
    @pytest.mark.parametrize(
        "request_",
        [
            post(CARD, OFFER),
            post(CARD, OFFER.replace(b"Upgrade: h", b"uPGRADE \t: h")),
            post(b"\nupgrade: x" * 9 + CARD),
            post(CARD, b"X-Upgrade: 1\r\n"),
            b"UNKNOWN /post HTTP/1.1\r\nHost: h\r\n\r\n",
        ],
    )
    async def test_wherever_it_is_cut_in_two(self, request_: bytes) -> None:
        whole = Server()
        answers = codes(await whole.exchange([request_, LAST]))
        for cut in range(1, len(request_)):
            server = Server()
            sent = await server.exchange([request_[:cut], request_[cut:], LAST])
            assert (codes(sent), server.requests) == (answers, whole.requests), cut

    async def test_byte_by_byte(self) -> None:
        server = Server()
        request_ = post(CARD, OFFER)
        pieces = [request_[n : n + 1] for n in range(len(request_))]
        assert codes(await server.exchange([*pieces, LAST])) == [b"200", b"200"]
        assert server.requests == [("/post", CARD), ("/last", b"")]

    @pytest.mark.parametrize("cut", range(0, 30, 3))
    async def test_or_it_is_refused_if_it_came_with_the_one_before_it(self, cut: int) -> None:
        server = Server()
        both = post(b"one") + post(CARD, OFFER)
        at = both.index(b"Upgrade:") - 10 + cut
        answers = codes(await server.exchange([both[:at], both[at:], LAST]))
        assert server.requests[0] == ("/post", b"one")
        assert answers in ([b"200", b"400"], [b"200", b"200", b"200"])
        assert ("/card", b"") not in server.requests

    async def test_or_it_is_refused_if_it_asks_for_a_tunnel(self) -> None:
        tunnel = b"CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n"
        assert codes(await Server().exchange([tunnel + CARD])) == [b"400"]


class TestAnswersComeInOrder:
    @pytest.mark.parametrize("together", [True, False])
    async def test_also_before_that_to_a_bad_head(self, together: bool) -> None:
        server = Server()
        server.go.clear()
        pieces = [post(b"1"), post(b"2"), post(b"3"), BAD]
        sent = await server.exchange([b"".join(pieces)] if together else pieces)
        assert codes(sent) == [b"200", b"200", b"200", b"400"]
        assert [body for _, body in server.requests] == [b"1", b"2", b"3"]

    async def test_also_before_that_to_a_body_that_is_not_well_formed(self) -> None:
        server = Server()
        server.go.clear()
        chunked = b"POST /bad HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
        sent = await server.exchange([post(b"1") + post(b"2"), chunked])
        assert codes(sent) == [b"200", b"200", b"400"]
        assert ("/bad", b"") not in server.requests

    async def test_a_bad_body_alone_is_answered_at_once(self) -> None:
        server = Server()
        server.go.clear()
        chunked = b"POST /bad HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
        assert codes(await server.exchange([chunked], release=False)) == [b"400"]


async def test_a_connection_has_only_so_many_requests_waiting() -> None:
    server = Server()
    server.go.clear()
    sent = await server.exchange([CARD * 5000])
    assert codes(sent) == [b"200"] * 101 + [b"429"]
    assert len(server.requests) == 101


MIB = 1024 * 1024
PATIENCE = 60.0


class Much:
    """An application with large answers, on a real socket."""

    def __init__(self, size: int = 20 * MIB) -> None:
        self.size, self.begun, self.port = size, 0, 0
        self.state = uvicorn.server.ServerState()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.begun += 1
        headers = [(b"content-length", b"%d" % self.size)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"x" * self.size})

    @asynccontextmanager
    async def served(self) -> AsyncIterator[Much]:
        """Serve on a port."""
        options = uvicorn_options() | {"lifespan": "off", "log_config": None, "access_log": False}
        config = uvicorn.Config(self, **options)
        config.load()
        server = await asyncio.get_running_loop().create_server(
            lambda: HttpProtocol(config, self.state, {}), "127.0.0.1", 0
        )
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            await close_listener(server)
            await self.until(lambda: not self.state.connections)

    @asynccontextmanager
    async def asked(self, requests: bytes = CARD) -> AsyncIterator[asyncio.StreamReader]:
        """A client that has sent these requests, and does not read."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1)
        writer.write(requests)
        try:
            yield reader
        finally:
            writer.transport.abort()
            await asyncio.sleep(0)

    async def until(self, condition: Any) -> None:
        """Wait until something is so."""
        async with asyncio.timeout(PATIENCE):
            while not condition():  # noqa: ASYNC110 - it becomes so in the next turns of the loop
                await asyncio.sleep(0)


class TestAnswersThatNobodyReads:
    @pytest.fixture(autouse=True)
    def quota(self, monkeypatch: pytest.MonkeyPatch) -> ByteQuota:
        """The quota for them."""
        quota = ByteQuota(64 * MIB)
        monkeypatch.setattr(unread, "unread", lambda: quota)
        return quota

    async def test_end_with_their_connection(self, settings: Settings, quota: ByteQuota) -> None:
        settings.A2A_REQUEST_SECONDS = 0.3
        async with Much().served() as much, much.asked():
            await much.until(lambda: quota.used > MIB)
            await much.until(lambda: not much.state.connections)
            assert quota.used == 0

    async def test_are_refused_beyond_the_quota(self, quota: ByteQuota) -> None:
        async with Much().served() as much, much.asked():
            await much.until(lambda: quota.used > MIB)
            quota._limit = quota.used + 20 * MIB  # less than is left for others after a second one
            async with much.asked() as second:
                await much.until(lambda: len(much.state.connections) == 1 and much.begun == 2)
                async with asyncio.timeout(PATIENCE):
                    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                        await second.readexactly(20 * MIB)
        assert quota.used == 0

    async def test_keep_the_next_request_from_its_begin(self, quota: ByteQuota) -> None:
        async with Much().served() as much, much.asked(CARD + LAST) as reader:
            await much.until(lambda: quota.used > MIB)
            for _ in range(100):
                await asyncio.sleep(0)
            assert much.begun == 1
            async with asyncio.timeout(PATIENCE):
                while await reader.read(MIB):
                    pass
            assert much.begun == 2
        assert quota.used == 0

    async def test_are_looked_at_also_when_they_are_short(self, settings: Settings) -> None:
        settings.A2A_REQUEST_SECONDS = 0.1
        wire = Wire()
        wire.unsent = 1000
        config = uvicorn.Config(Server(), **uvicorn_options() | {"log_config": None})
        config.load()
        protocol = HttpProtocol(config, uvicorn.server.ServerState(), {})
        protocol.connection_made(wire)
        protocol.data_received(CARD)
        async with asyncio.timeout(PATIENCE):
            await wire.ended.wait()
        assert b"/card" in wire.sent
        protocol.connection_lost(None)


async def test_more_connections_than_descriptors_allow_are_turned_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_protocol, "_count_connections", lambda: 1)
    async with Much(1).served() as much, much.asked() as first:
        assert await first.readexactly(8) == b"HTTP/1.1"
        async with much.asked() as second, asyncio.timeout(PATIENCE):
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await second.readexactly(1)
