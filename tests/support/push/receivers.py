"""Receivers that misbehave, one way a path, on real sockets; and certificates for those that do so over TLS.

A behaviour is a function that gets the request it was sent and the connection, and does as it likes with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
import threading
import warnings
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from tests.support.bindings import authority as issuing
from tests.support.listeners import close_listener

__all__ = [
    "Authority",
    "Farm",
    "Seen",
    "deaf",
    "farm",
    "flooding",
    "full",
    "greeting",
    "serving",
    "nobody",
    "old",
    "request",
]

Writer = asyncio.StreamWriter
#: The name certificates are for.
NAME = "receiver.example"


@dataclass(frozen=True)
class Seen:
    """A request as it came."""

    line: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = field(repr=False)

    @property
    def path(self) -> str:
        """What stands in the request line."""
        return self.line.split()[1]

    def header(self, name: str) -> list[str]:
        """Every value of a header."""
        return [value for own, value in self.headers if own == name]


Serve = Callable[[asyncio.StreamReader, Writer], Awaitable[None]]
Behaviour = Callable[[Seen, Writer], Awaitable[None]]
BEHAVIOURS: dict[str, Behaviour] = {}


def behaviour(function: Behaviour) -> Behaviour:
    """Have it at the path of its name."""
    BEHAVIOURS["/" + function.__name__.replace("_", "-")] = function
    return function


def answer(status: str, *headers: str, body: bytes = b"") -> bytes:
    """A whole answer."""
    lines = (f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", "")
    return "\r\n".join(lines).encode() + body


def head(*headers: str) -> bytes:
    """The head of a 200."""
    return "\r\n".join(("HTTP/1.1 200 OK", *headers, "", "")).encode()


async def trickle(writer: Writer, data: bytes) -> None:
    """A byte now and then, until the other side has had enough."""
    for n in range(len(data)):
        writer.write(data[n : n + 1])
        await writer.drain()
        await asyncio.sleep(0.02)


async def forever(writer: Writer, data: bytes) -> None:
    """The same again and again."""
    while not writer.is_closing():
        writer.write(data)
        await writer.drain()
        await asyncio.sleep(0)  # uvloop's TLS neither waits nor tells that the other side has gone


async def gone(writer: Writer) -> None:
    """Wait for the other side to hang up."""
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def reset(writer: Writer) -> None:
    """Hang up without a word (RST)."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@behaviour
async def ok(seen: Seen, writer: Writer) -> None:
    writer.write(answer("200 OK", body=b"thanks"))


@behaviour
async def status(seen: Seen, writer: Writer) -> None:
    """/status?503: with that status; further parts are headers."""
    code, *headers = seen.path.partition("?")[2].split("&")
    headers = [header.replace("+", " ").replace("=", ": ", 1) for header in headers]
    bodiless = code in {"204", "304"}
    if bodiless:
        writer.write("\r\n".join((f"HTTP/1.1 {code} X", *headers, "", "")).encode())
    else:
        writer.write(answer(f"{code} X", *headers, body=b"words"))


@behaviour
async def echo(seen: Seen, writer: Writer) -> None:
    """All it was told, back."""
    said = "\n".join(f"{name}: {value}" for name, value in seen.headers).encode()
    writer.write(answer("400 Bad Request", body=said))


@behaviour
async def echo_late(seen: Seen, writer: Writer) -> None:
    """What it was told, where an excerpt ends."""
    said = seen.header("authorization")[0].encode()
    writer.write(answer("200 OK", body=b"x" * 1015 + said))


@behaviour
async def huge_length(seen: Seen, writer: Writer) -> None:
    """More digits than Python takes for a number."""
    writer.write(head("Content-Length: " + "9" * 5000))


@behaviour
async def huge_chunk(seen: Seen, writer: Writer) -> None:
    writer.write(head("Transfer-Encoding: chunked") + b"f" * 5000 + b"\r\n")


@behaviour
async def chunked(seen: Seen, writer: Writer) -> None:
    writer.write(head("Transfer-Encoding: chunked") + b"3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\n\r\n")


@behaviour
async def till_the_end(seen: Seen, writer: Writer) -> None:
    """A body without a length, that ends with the connection (RFC 9112 §6.3)."""
    writer.write(head() + b"abc")
    writer.close()


@behaviour
async def never_answers(seen: Seen, writer: Writer) -> None:
    await gone(writer)


@behaviour
async def head_by_bytes(seen: Seen, writer: Writer) -> None:
    await trickle(writer, b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * 10_000)


@behaviour
async def body_by_bytes(seen: Seen, writer: Writer) -> None:
    writer.write(head("Content-Length: 100000"))
    await trickle(writer, b"x" * 100_000)


@behaviour
async def endless_body(seen: Seen, writer: Writer) -> None:
    writer.write(head())
    await forever(writer, b"x" * 65536)


@behaviour
async def endless_chunks(seen: Seen, writer: Writer) -> None:
    writer.write(head("Transfer-Encoding: chunked"))
    await forever(writer, b"1\r\nx\r\n" * 1000)


@behaviour
async def endless_chunk_size(seen: Seen, writer: Writer) -> None:
    writer.write(head("Transfer-Encoding: chunked"))
    await forever(writer, b"0" * 1000)


@behaviour
async def endless_trailers(seen: Seen, writer: Writer) -> None:
    writer.write(head("Transfer-Encoding: chunked") + b"1\r\nx\r\n0\r\n")
    await forever(writer, b"X-A: b\r\n" * 100)


@behaviour
async def gzip_bomb(seen: Seen, writer: Writer) -> None:
    """A megabyte of zeros in a kilobyte; /gzip-bomb?64: so many megabytes."""
    packer = zlib.compressobj(wbits=31)
    query = seen.path.partition("?")[2]  # the farm's receivers have other queries
    megabytes = int(query) if query.isdigit() else 1
    pieces = [packer.compress(bytes(1024 * 1024)) for _ in range(megabytes)]
    bomb = b"".join([*pieces, packer.flush()])
    writer.write(answer("200 OK", "Content-Encoding: gzip", body=bomb))


@behaviour
async def endless_headers(seen: Seen, writer: Writer) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    await forever(writer, b"X-A: b\r\n" * 100)


@behaviour
async def one_large_header(seen: Seen, writer: Writer) -> None:
    writer.write(head("X-Large: " + "x" * 65536, "Content-Length: 0"))


@behaviour
async def invalid_status_line(seen: Seen, writer: Writer) -> None:
    writer.write(b"HTTP/1.1 OK 200\r\n\r\n")


@behaviour
async def another_protocol(seen: Seen, writer: Writer) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")


@behaviour
async def http_0_9(seen: Seen, writer: Writer) -> None:
    """A page and nothing around it."""
    writer.write(b"<html>hello</html>\n")
    writer.close()


@behaviour
async def invalid_header(seen: Seen, writer: Writer) -> None:
    writer.write(head("no colon here"))


@behaviour
async def two_lengths(seen: Seen, writer: Writer) -> None:
    writer.write(head("Content-Length: 1", "Content-Length: 2") + b"ab")


@behaviour
async def closes_at_once(seen: Seen, writer: Writer) -> None:
    writer.close()


@behaviour
async def resets_at_once(seen: Seen, writer: Writer) -> None:
    reset(writer)


@behaviour
async def closes_within_the_head(seen: Seen, writer: Writer) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nX-A")
    writer.close()


@behaviour
async def closes_after_the_head(seen: Seen, writer: Writer) -> None:
    writer.write(head("Content-Length: 10"))
    writer.close()


@behaviour
async def resets_within_the_body(seen: Seen, writer: Writer) -> None:
    writer.write(head("Content-Length: 100") + b"some")
    await writer.drain()
    await asyncio.sleep(0.05)
    reset(writer)


@behaviour
async def interim_then_ok(seen: Seen, writer: Writer) -> None:
    writer.write(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n")
    writer.write(answer("200 OK"))


@behaviour
async def interim_flood(seen: Seen, writer: Writer) -> None:
    await forever(writer, b"HTTP/1.1 102 Processing\r\n\r\n" * 100)


@behaviour
async def switches_protocols(seen: Seen, writer: Writer) -> None:
    writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n")


@behaviour
async def more_than_was_asked(seen: Seen, writer: Writer) -> None:
    """A second answer behind the first, for whoever comes next."""
    writer.write(answer("200 OK", body=b"first") + answer("500 X", body=b"second"))


@behaviour
async def closes_later(seen: Seen, writer: Writer) -> None:
    """Says that it will keep the connection, and does not."""
    writer.write(answer("200 OK", "Connection: keep-alive", body=b"bye"))
    await writer.drain()
    writer.close()


async def request(reader: asyncio.StreamReader) -> Seen:
    """The next request of a connection. Raises IncompleteReadError when there is none."""
    text = await reader.readuntil(b"\r\n\r\n")
    line, *lines = text.decode("latin-1").rstrip("\r\n").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    headers = tuple((name.lower(), value.strip()) for name, _, value in pairs)
    length = next((int(value) for name, value in headers if name == "content-length"), 0)
    return Seen(line, headers, await reader.readexactly(length))


class Farm:
    """The receivers at one port of 127.0.0.1."""

    def __init__(self, scheme: str = "http") -> None:
        self.seen: list[Seen] = []
        #: Connections that were made.
        self.connections = 0
        self.scheme = scheme
        self.port = 0

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        """Where a behaviour is."""
        return f"{self.scheme}://{host}:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: Writer) -> None:
        """Answer the requests of one connection as their paths say."""
        self.connections += 1
        while not writer.is_closing():
            seen = await request(reader)
            self.seen.append(seen)
            await BEHAVIOURS[seen.path.partition("?")[0]](seen, writer)
            await writer.drain()


@asynccontextmanager
async def farm(tls: ssl.SSLContext | None = None) -> AsyncIterator[Farm]:
    """The receivers, for a while."""
    made = Farm("https" if tls else "http")
    async with serving(made.serve, tls) as made.port:
        yield made


@asynccontextmanager
async def serving(
    serve: Serve, tls: ssl.SSLContext | None = None, *, port: int = 0, backlog: int = 100
) -> AsyncIterator[int]:
    """A port of 127.0.0.1 with this server, who may leave or be left at any time; everybody is hung up on in the end."""
    open_: dict[asyncio.Task[None] | None, Writer] = {}

    async def one(reader: asyncio.StreamReader, writer: Writer) -> None:
        open_[asyncio.current_task()] = writer
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await serve(reader, writer)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        del open_[asyncio.current_task()]

    server = await asyncio.start_server(one, "127.0.0.1", port, ssl=tls, backlog=backlog)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        await close_listener(server)
        for writer in open_.values():
            writer.transport.abort()
        await asyncio.gather(*(task for task in open_ if task))
        for _ in range(
            3
        ):  # who hung up at the last moment: a transport gives its socket back in the loop's next turn
            await asyncio.sleep(0)


@contextmanager
def nobody() -> Iterator[int]:
    """A port that is taken, at which nobody listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield sock.getsockname()[1]


@contextmanager
def deaf() -> Iterator[int]:
    """A port where connections are made by the kernel and accepted by nobody."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        yield sock.getsockname()[1]


@asynccontextmanager
async def greeting() -> AsyncIterator[int]:
    """A port where the other side speaks first, and not TLS."""

    async def greet(reader: asyncio.StreamReader, writer: Writer) -> None:
        writer.write(b"220 mail.example ESMTP\r\n")
        await reader.read()

    async with serving(greet) as port:
        yield port


@contextmanager
def full() -> Iterator[int]:
    """A port whose queue is full: nobody gets in any more."""
    with contextlib.ExitStack() as stack:
        sock = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(sock.getsockname())
        yield sock.getsockname()[1]


@asynccontextmanager
async def flooding(size: int) -> AsyncIterator[int]:
    """A port where a body of `size` bytes comes as fast as it is taken, out of no memory of this process."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        thread = threading.Thread(target=_flood, args=(sock, size))
        thread.start()
        try:
            yield sock.getsockname()[1]
        finally:
            sock.shutdown(socket.SHUT_RDWR)
            await asyncio.to_thread(thread.join)


def _flood(listener: socket.socket, size: int) -> None:
    block = memoryview(bytes(65536))
    with contextlib.suppress(OSError):
        sock, _ = listener.accept()
        with sock:
            sock.recv(65536)
            sock.sendall(head(f"Content-Length: {size}"))
            for _ in range(0, size, len(block)):
                sock.sendall(block)


def old(server: ssl.SSLContext) -> ssl.SSLContext:
    """The same server, of the last century: TLS 1.0 and nothing else."""
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        server.minimum_version = ssl.TLSVersion.TLSv1
        server.maximum_version = ssl.TLSVersion.TLSv1
    server.set_ciphers("ALL:@SECLEVEL=0")
    return server


class Authority(issuing.Authority):
    """A certificate authority of the tests, and servers for which it, or nobody, vouches."""

    def server(self, name: str = NAME, *, days: int = 1, trusted: bool = True) -> ssl.SSLContext:
        """A server's side of TLS, under this name, until so many days from now."""
        chain, key = self.issue(f"{name}-{days}-{trusted}", name, days=days, trusted=trusted)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain, key)
        return context
