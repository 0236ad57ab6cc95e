"""Timeouts, metadata and messages, as gRPC writes them."""

from __future__ import annotations

import base64
import gzip
import zlib
from collections.abc import Callable
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_project.grpc_server.wire import (
    BadMessage,
    Messages,
    TooLarge,
    Unpackable,
    framed,
    timeout,
    told,
    well_formed,
    written,
)

MOST = 1000
messages = st.lists(st.binary(max_size=60), max_size=6)


def taken(reader: Messages) -> list[bytes]:
    """All messages that are complete."""
    found = []
    while (message := reader.next()) is not None:
        found.append(message)
    return found


@given(messages, st.lists(st.integers(1, 40), max_size=20))
def test_messages_come_as_they_were_sent_however_they_are_cut(
    sent: list[bytes], cuts: list[int]
) -> None:
    data, reader, found = framed(sent), Messages(MOST), []
    for size in [*cuts, len(data)]:
        reader.take(data[:size])
        data = data[size:]
        found += taken(reader)
    assert found == sent
    assert len(reader) == 0


@given(st.binary(max_size=300))
def test_whatever_comes_is_messages_or_refused(data: bytes) -> None:
    reader = Messages(MOST)
    reader.take(data)
    try:
        found = taken(reader)
    except BadMessage as fault:
        assert str(fault)
    else:
        assert len(framed(found)) + len(reader) == len(data)


@pytest.mark.parametrize(
    ("name", "pack"),
    [(b"gzip", gzip.compress), (b"deflate", zlib.compress)],
    ids=["gzip", "deflate"],
)
def test_a_compressed_message_is_taken_in_the_encoding_that_was_named(
    name: bytes, pack: Callable[[bytes], bytes]
) -> None:
    packed = pack(b"x" * MOST)
    reader = Messages(MOST, name)
    reader.take(b"\1" + len(packed).to_bytes(4) + packed)
    assert taken(reader) == [b"x" * MOST]


@pytest.mark.parametrize(
    ("encoding", "packed", "fault"),
    [
        (b"gzip", gzip.compress(b"x" * (MOST + 1)), TooLarge),
        (b"gzip", gzip.compress(b"x")[:-1], BadMessage),
        (b"gzip", b"nothing of the kind", BadMessage),
        (b"", gzip.compress(b"x"), BadMessage),
        (b"identity", gzip.compress(b"x"), BadMessage),
        (b"snappy", b"x", Unpackable),
    ],
    ids=["a bomb", "cut off", "something else", "in no encoding", "in none", "in an unknown one"],
)
def test_a_bomb_and_what_cannot_be_unpacked_are_refused(
    encoding: bytes, packed: bytes, fault: type[BadMessage]
) -> None:
    reader = Messages(MOST, encoding)
    reader.take(b"\1" + len(packed).to_bytes(4) + packed)
    with pytest.raises(fault):
        reader.next()


def test_a_message_too_long_is_refused_before_it_is_there() -> None:
    reader = Messages(MOST)
    reader.take(b"\0" + (MOST + 1).to_bytes(4))
    with pytest.raises(TooLarge, match="longer than 1000 bytes"):
        reader.next()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(b"2H", 7200.0), (b"3M", 180.0), (b"10S", 10.0), (b"5m", 0.005), (b"7u", 7e-6), (b"0n", 0.0)],
)
def test_a_timeout_is_read_in_its_unit(text: bytes, seconds: float) -> None:
    assert timeout(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", [b"", b"S", b"5", b"5x", b"-5S", b"1.5S", b"123456789S", b"1_0S"])
def test_what_is_no_timeout_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        timeout(text)


@given(st.text())
def test_the_message_of_a_status_is_plain_ascii_and_is_read_back(message: str) -> None:
    sent = told(message)
    assert all(0x20 <= sign <= 0x7E for sign in sent)
    assert unquote(sent.decode(), errors="surrogatepass") == message


@given(st.binary(), st.text())
def test_metadata_never_break_a_header(binary: bytes, text: str) -> None:
    (_, packed), (_, plain) = written([("a-bin", binary), ("b", text)])
    assert base64.b64decode(packed + b"=" * (-len(packed) % 4)) == binary
    assert all(0x20 <= sign <= 0x7E for sign in plain)


OWN = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/a/b")]


def test_a_request_has_its_own_headers_first_and_once_and_plain_ones_then() -> None:
    assert well_formed([*OWN, (b":authority", b"here"), (b"x-a", b"\xffand\tmore")])
    for headers in (
        OWN[1:],
        [*OWN, OWN[0]],
        [(b"te", b"trailers"), *OWN],
        [*OWN, (b"X-A", b"1")],
        [*OWN, (b"", b"1")],
        [*OWN, (b"a b", b"1")],
        [*OWN, (b"a", b"1\r\nb: 2")],
        [*OWN, (b"a", b"\0")],
    ):
        assert not well_formed(headers)
