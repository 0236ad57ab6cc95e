"""What an answer may have beside its body has an end, and one read of it holds no event loop."""

from __future__ import annotations

from aiohttp.http_exceptions import HttpProcessingError

from a2a_tasks.outbound.connector import MAX_INTERIM, Connector
from tests.support.rows import rows

INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"
FINAL = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100_000


@rows("before, comes", [(0, True), (MAX_INTERIM, True), (MAX_INTERIM + 1, False), (10_000, False)])
async def test_an_answer_comes_after_few_interim_ones(before: int, comes: bool) -> None:
    connector = Connector()
    protocol = connector._factory()
    protocol.set_response_params()
    protocol.data_received(INTERIM * before + FINAL)
    assert len(protocol) == min(before + comes, MAX_INTERIM + comes)
    assert isinstance(protocol.exception(), HttpProcessingError) is not comes
    await connector.close()


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
SWITCH = b"HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"


@rows(
    "head, piece, ends",
    [
        (b"", b"\r\n" * 500, True),
        (CHUNKED, b"1;" + b"a" * 1000 + b"\r\na\r\n", True),
        (CHUNKED + b"1;", b"a" * 1000, True),
        (CHUNKED, b"1\r\na\r\n" * 200, False),
        (FINAL[:-100_000].replace(b"100000", b"10000000"), b"x" * 1000, False),
        (SWITCH, b"x" * 1000, False),
    ],
)
async def test_bytes_beside_the_body_have_an_end(head: bytes, piece: bytes, ends: bool) -> None:
    connector = Connector()
    protocol = connector._factory()
    protocol.set_response_params(read_bufsize=1 << 24)
    protocol.data_received(head)
    for _ in range(2000):
        protocol.data_received(piece)
    assert (protocol.exception() is not None) is ends
    await connector.close()


async def test_they_are_counted_for_each_request() -> None:
    connector = Connector()
    protocol = connector._factory()
    for _ in range(5):
        protocol.set_response_params()
        protocol.data_received(INTERIM * MAX_INTERIM + b"HTTP/1.1 204 X\r\n\r\n")
        codes = [(await protocol.read())[0].code for _ in range(MAX_INTERIM + 1)]
        assert codes[-1] == 204
    await connector.close()
