"""Hostile bytes over a bare socket, and whatever comes back."""

from __future__ import annotations

import contextlib
import socket
import struct

from hpack import Decoder
from hyperframe.frame import Frame, HeadersFrame

__all__ = ["FRAMES", "call_of", "reply"]

#: Seconds that a server may say nothing.
IMPATIENCE = 0.5
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RESET, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, END_HEADERS = 1, 4
#: Bytes before the payload of a frame.
FRAME = 9


def _frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _length(number: int) -> bytes:
    """HPACK's integer of seven bits."""
    if number < 127:
        return bytes([number])
    number, found = number - 127, bytearray([127])
    while number >= 128:
        found.append(number % 128 + 128)
        number //= 128
    return bytes([*found, number])


def _fields(*pairs: tuple[bytes, bytes]) -> bytes:
    """Literals that no table keeps."""
    return b"".join(b"\x00" + _length(len(k)) + k + _length(len(v)) + v for k, v in pairs)


RIGHT: dict[bytes, bytes] = {
    b":method": b"POST",
    b":scheme": b"http",
    b":path": b"/lf.a2a.v1.A2AService/ListTasks",
    b":authority": b"localhost",
    b"te": b"trailers",
    b"content-type": b"application/grpc",
}
BEGUN = PREFACE + _frame(SETTINGS)
EMPTY = b"\x00" * 5


def _head(*more: tuple[bytes, bytes], **changed: bytes | None) -> bytes:
    """A call's first frame; members given as None are left out."""
    given = {key.encode().replace(b"_", b"-"): value for key, value in changed.items()}
    kept = {key: given.get(key.lstrip(b":"), right) for key, right in RIGHT.items()}
    pairs = [(key, value) for key, value in kept.items() if value is not None]
    return _frame(HEADERS, END_HEADERS, 1, _fields(*pairs, *more))


def _call(body: bytes = EMPTY, *more: tuple[bytes, bytes], **changed: bytes | None) -> bytes:
    return BEGUN + _head(*more, **changed) + _frame(DATA, END_STREAM, 1, body)


def call_of(path: bytes, *metadata: tuple[bytes, bytes]) -> bytes:
    """A whole call of a path."""
    return _call(EMPTY, *metadata, path=path)


#: What is no HTTP/2, what is no call, and what is none that grpcio's own client would send.
FRAMES: tuple[bytes, ...] = (
    b"\x00" * 100,
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST /agents/demo/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 200,
    PREFACE + b"\xff" * 200,
    PREFACE + _frame(DATA, END_STREAM, 1, EMPTY),
    BEGUN + _frame(SETTINGS, 0, 0, b"\x00" * 5),
    BEGUN + _frame(SETTINGS, 0, 1),
    BEGUN + _frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 2**32 - 1)),
    BEGUN + _frame(SETTINGS, 0, 0, struct.pack(">HI", 5, 1)),
    BEGUN + _frame(SETTINGS) * 2000,
    BEGUN + _frame(PING, 0, 0, b"12345678") * 2000,
    BEGUN + _frame(PING, 0, 0, b"1"),
    BEGUN + _frame(WINDOW, 0, 0, struct.pack(">I", 2**31 - 1)) * 3,
    BEGUN + _frame(WINDOW, 0, 0, b"\x00" * 4),
    BEGUN + _frame(PRIORITY, 0, 1, struct.pack(">IB", 1, 1)),
    BEGUN + _frame(PUSH, END_HEADERS, 1, b"\x00\x00\x00\x02"),
    BEGUN + _frame(GOAWAY, 0, 0, b"\x00" * 8 + b"x" * 1000),
    BEGUN + _frame(0x7F, 0xFF, 99, b"x" * 100),
    BEGUN + _frame(CONTINUATION, 0, 1, b"x"),
    BEGUN + _frame(HEADERS, 0, 1, _fields((b"x", b"y"))) + _frame(CONTINUATION, 0, 1, b"\x00") * 500,
    BEGUN + _frame(HEADERS, END_HEADERS, 1, b"\xff" * 100),
    BEGUN + _frame(HEADERS, END_HEADERS, 1, b"\x00\x7f\xff\xff\xff\xff\x0f"),
    BEGUN + _frame(HEADERS, END_HEADERS, 2, _fields(*RIGHT.items())),
    BEGUN + _frame(HEADERS, END_HEADERS, 0, _fields(*RIGHT.items())),
    BEGUN + _frame(DATA, 0, 1, b"x" * 20_000),
    BEGUN + b"".join(_frame(HEADERS, END_HEADERS, 2 * n + 1, _fields(*RIGHT.items())) + _frame(RESET, 0, 2 * n + 1, b"\x00\x00\x00\x08") for n in range(500)),
    _call(method=b"GET"),
    _call(method=b"a b"),
    _call(method=None),
    _call(path=None),
    _call(path=b""),
    _call(path=b"lf.a2a.v1.A2AService/ListTasks"),
    _call(path=b"/\xff\x00\r\n"),
    _call(path=b"/" + b"a" * 60_000),
    _call(scheme=b"gopher"),
    _call(authority=b"\xff\x00"),
    _call(te=None),
    _call(content_type=None),
    _call(content_type=b"text/plain"),
    _call(content_type=b"application/grpc+json"),
    _call(EMPTY, (b"grpc-timeout", b"nonsense")),
    _call(EMPTY, (b"grpc-timeout", b"0n")),
    _call(EMPTY, (b"grpc-timeout", b"99999999999H")),
    _call(EMPTY, (b"grpc-encoding", b"nonsense")),
    _call(b"\x01\x00\x00\x00\x02\x1f\x8b", (b"grpc-encoding", b"gzip")),
    _call(b"\x01\x00\x00\x00\x01\x00"),
    _call(b"\x02\x00\x00\x00\x00"),
    _call(b"\x00\xff\xff\xff\xff"),
    _call(b"\x00\x00\x00\x00\x09\x0a"),
    _call(b"\x00\x00"),
    _call(b""),
    _call(EMPTY * 1000),
    _call(EMPTY, (b"a2a-agent", b"\xff\xfe\x80")),
    _call(EMPTY, (b"a2a-version", b"1.0\r\nx: y")),
    _call(EMPTY, (b"authorization", b"Bearer \x00\xff")),
    _call(EMPTY, (b"x-api-key", "\u20ac".encode())),
    _call(EMPTY, (b"X-API-Key", b"a")),
    _call(EMPTY, (b"a b", b"c"), (b"", b"c"), (b"x\x00", b"c")),
    _call(EMPTY, (b"traceparent-bin", b"***")),
    _call(EMPTY, (b"connection", b"close"), (b"transfer-encoding", b"chunked")),
    _call(EMPTY, (b":path", b"/again")),
    _call(EMPTY, (b"x", b"y" * 40_000)),
    _call(EMPTY, *[(b"x", b"y")] * 3000),
)  # fmt: skip


def reply(port: int, data: bytes) -> bytes:
    """What comes back for these bytes, until the other end hangs up or says nothing for a while, and its headers in clear."""
    found = b""
    with (
        contextlib.suppress(OSError),
        socket.create_connection(("127.0.0.1", port), timeout=IMPATIENCE) as wire,
    ):
        wire.sendall(data)
        while len(found) < 1_000_000 and (piece := wire.recv(65536)):
            found += piece
    return found + _headers(found)


def _headers(data: bytes) -> bytes:
    """The headers in frames of HTTP/2, a line each: they are packed."""
    unpacked, decoder = b"", Decoder()
    while len(data) >= FRAME:
        frame, length = Frame.parse_frame_header(memoryview(data[:FRAME]))
        if isinstance(frame, HeadersFrame):
            frame.parse_body(memoryview(data[FRAME : FRAME + length]))
            pairs = decoder.decode(frame.data, raw=True)
            unpacked += b"".join(b"\n%s: %s" % (name, value) for name, value in pairs)
        data = data[FRAME + length :]
    return unpacked
