"""How gRPC writes itself over HTTP/2: timeouts, metadata and messages. Pure.

Source: grpc/grpc, doc/PROTOCOL-HTTP2.md.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Iterable, Sequence
from urllib.parse import quote

from a2a_tasks.bindings.grpc.call import Metadata

__all__ = [
    "PREFIX",
    "BadMessage",
    "Messages",
    "TooLarge",
    "Unpackable",
    "framed",
    "of_grpc",
    "timeout",
    "told",
    "well_formed",
    "written",
]

#: A message begins with a flag and its length.
PREFIX = 5
GRPC = b"application/grpc"
#: Headers of HTTP's own that a request has.
REQUIRED = {b":method", b":path", b":scheme"}
_NAMES = re.compile(rb"(?::?[a-z0-9!#$%&'*+.^_`|~-]+(?:\n|$))+").fullmatch
_VALUES = re.compile(rb"[\t\x20-\x7e\x80-\xff]*").fullmatch
#: Seconds in each unit of a timeout.
UNITS = {b"H": 3600.0, b"M": 60.0, b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}
#: A timeout has no more digits.
DIGITS = 8
#: What a status message may contain as it is; the rest is percent-encoded.
PLAIN = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")
#: Encodings in which no message is compressed.
NOT_PACKED = {b"", b"identity"}
#: Window bits for zlib: of a gzip stream, and of a zlib one (which gRPC calls deflate).
INFLATED = {b"gzip": zlib.MAX_WBITS | 16, b"deflate": zlib.MAX_WBITS}


class BadMessage(Exception):
    """What came is no message; says why."""


class TooLarge(BadMessage):
    """A message is longer than it may be."""


class Unpackable(BadMessage):
    """A message is compressed in a way that is not known here."""


def of_grpc(content_type: bytes) -> bool:
    """Is that gRPC's, in whatever subtype? gRPC-Web is not."""
    return content_type.startswith(GRPC) and content_type[len(GRPC) :][:1] in {b"", b"+", b";"}


def well_formed(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Are these the headers of a request (RFC 9113 §8.2, §8.3)? HTTP's own come first, each once."""
    own = [name for name, _ in headers if name[:1] == b":"]
    # Looked at all together: this is done for each call.
    names = b"\n".join([name for name, _ in headers])
    return (
        len(set(own)) == len(own) == names.count(b":")
        and set(own) >= REQUIRED
        and [name for name, _ in headers[: len(own)]] == own
        and names.count(b"\n") == len(headers) - 1
        and names[-1:] != b"\n"
        and _NAMES(names) is not None
        and _VALUES(b"".join([value for _, value in headers])) is not None
    )


def timeout(text: bytes) -> float:
    """Seconds of a `grpc-timeout`. ValueError when it is none."""
    digits, unit = text[:-1], UNITS.get(text[-1:])
    if unit is None or not digits.isdigit() or len(digits) > DIGITS:
        raise ValueError("The timeout cannot be read")
    return int(digits) * unit


def framed(messages: Iterable[bytes]) -> bytes:
    """Messages one after the other, each with its length before it."""
    return b"".join(
        piece for message in messages for piece in (b"\0", len(message).to_bytes(4), message)
    )


def written(metadata: Metadata) -> list[tuple[bytes, bytes]]:
    """Metadata as headers. Values of text may hold printable ASCII only; whatever else there is, is left out."""
    return [(key.lower().encode(), _value(key, value)) for key, value in metadata]


def _value(key: str, value: str | bytes) -> bytes:
    if key.endswith("-bin"):
        plain = value.encode() if isinstance(value, str) else value
        return base64.b64encode(plain).rstrip(b"=")
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    return "".join(sign for sign in text if " " <= sign <= "~").strip().encode()


def told(message: str) -> bytes:
    """The message of a status, percent-encoded."""
    return quote(message, safe=PLAIN, errors="replace").encode()


class Messages:
    """The bytes of a call on their way in, and the messages they make."""

    def __init__(self, most: int, encoding: bytes = b"") -> None:
        """Messages of at most so many bytes, compressed ones in that encoding."""
        self._most, self._encoding = most, encoding
        self._came = bytearray()

    def __len__(self) -> int:
        """Bytes that make no message yet."""
        return len(self._came)

    def take(self, data: bytes) -> None:
        """Add what came."""
        self._came += data

    def forget(self) -> None:
        """Keep nothing of it."""
        self._came.clear()

    def next(self) -> bytes | None:
        """The next message; None until it is all there. Raises BadMessage, TooLarge."""
        came = self._came
        if len(came) < PREFIX:
            return None
        size = int.from_bytes(came[1:PREFIX])
        if size > self._most:
            raise TooLarge(f"The message is longer than {self._most} bytes")
        if len(came) < PREFIX + size:
            return None
        flag, message = came[0], bytes(came[PREFIX : PREFIX + size])
        del came[: PREFIX + size]
        return self._inflated(message) if flag else message

    def _inflated(self, message: bytes) -> bytes:
        if self._encoding in NOT_PACKED:
            raise BadMessage("The message is compressed in a way that nobody named")
        bits = INFLATED.get(self._encoding)
        if bits is None:
            raise Unpackable("The message is compressed in a way that is not known here")
        unpack = zlib.decompressobj(bits)
        try:
            found = unpack.decompress(message, self._most + 1)
        except zlib.error as error:
            raise BadMessage("The message cannot be decompressed") from error
        if len(found) > self._most:
            raise TooLarge(f"The message is longer than {self._most} bytes")
        if not unpack.eof:
            raise BadMessage("The message cannot be decompressed")
        return found
