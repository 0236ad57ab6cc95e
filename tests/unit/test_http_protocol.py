"""uvicorn's connection reads each request as it is, however its bytes arrive, and answers in order."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn

from a2a_project.http_protocol import HttpProtocol
from a2a_project.server import uvicorn_options

if TYPE_CHECKING:
    from collections.abc import Sequence

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

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.ended.is_set(), "written after the end"
        self.sent += data

    def write_eof(self) -> None:
        self.ended.set()

    def close(self) -> None:
        self.ended.set()

    def is_closing(self) -> bool:
        return self.ended.is_set()

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
