"""What our headers say to a peer's decoder, and what a peer's encoder says to us, is what hpack makes of it."""

from __future__ import annotations

from hpack import Decoder, Encoder
from hypothesis import given
from hypothesis import strategies as st

from a2a_project.grpc_server.compression import KEPT, Reader, Writer

#: Few of them, so that the same come again, and long ones, so that a table of 4 KiB forgets.
NAMES = st.sampled_from([b":status", b":path", b"content-type", b"grpc-status", b"x-long"])
VALUES = st.sampled_from([b"", b"200", b"/a", b"/b", b"application/grpc", b"0", b"y" * 2_000])
HEADERS = st.lists(st.tuples(NAMES, VALUES), max_size=6)
SENSITIVE = st.lists(st.tuples(NAMES, VALUES, st.booleans()), max_size=6)
#: What a peer may have its table hold, if it changes its mind.
SIZES = st.none() | st.sampled_from([0, 64, 2_500, 4_096])


@given(st.lists(st.tuples(SENSITIVE, SIZES), max_size=30))
def test_whatever_a_peer_says_is_read_as_hpack_reads_it(said: list) -> None:  # type: ignore[type-arg]
    peer, ours, theirs = Encoder(), Reader(), Decoder()
    for headers, size in said:
        if size is not None:
            peer.header_table_size = size
        block = peer.encode(headers)
        assert ours.decode(block, raw=True) == theirs.decode(block, raw=True)
        assert list(ours.header_table.dynamic_entries) == list(theirs.header_table.dynamic_entries)
        assert ours.header_table_size == theirs.header_table_size


@given(st.lists(st.tuples(HEADERS, SIZES), max_size=30))
def test_whatever_we_say_is_read_by_a_peer_that_keeps_nothing(said: list) -> None:  # type: ignore[type-arg]
    ours, peer = Writer(), Decoder()
    for headers, size in said:
        if size is not None:
            ours.header_table_size = peer.max_allowed_table_size = size
        assert list(peer.decode(ours.encode(headers), raw=True)) == headers
        assert not peer.header_table.dynamic_entries


def test_the_first_headers_say_that_there_is_no_table() -> None:
    ours, peer = Writer(), Decoder()
    peer.max_allowed_table_size = 0
    peer.decode(ours.encode([(b":status", b"200")]))
    assert peer.header_table_size == 0
    assert ours.encode([(b":status", b"200")]) == b"\x88"


def test_what_is_kept_of_a_client_is_little() -> None:
    ours, peer = Reader(), Encoder()
    for number in range(10 * KEPT):
        ours.decode(peer.encode([(b"x-call", b"%d" % number, True)]), raw=True)
    ours.decode(peer.encode([(b"x-long", b"\xff" * 2_000, True)]), raw=True)
    assert len(ours._known) == KEPT
