"""Server-sent events, as bytes."""

from __future__ import annotations

import json

from a2a_tasks.protocol import sse


class TestAFrame:
    def test_is_an_id_one_data_line_and_an_empty_line(self) -> None:
        assert sse.frame(7, b'{"a":1}') == b'id: 7\ndata: {"a":1}\n\n'

    def test_has_no_character_at_which_a_reader_of_lines_splits(self) -> None:
        text = '"' + "".join(map(chr, range(0x20, 0x3000))).replace('"', "").replace("\\", "") + '"'
        (_, data, end) = sse.frame(1, text.encode()).decode().splitlines()
        assert (json.loads(data.removeprefix("data: ")), end) == (json.loads(text), "")

    def test_can_be_put_behind_another(self) -> None:
        joined = sse.frame(1, b"a") + sse.frame(2, b"b")
        assert joined.split(b"\n\n") == [b"id: 1\ndata: a", b"id: 2\ndata: b", b""]


class TestAnErrorFrame:
    def test_names_itself_and_has_no_id_to_resume_from(self) -> None:
        assert sse.error_frame(b"{}", named=True) == b"event: error\ndata: {}\n\n"

    def test_is_one_line_of_data_as_well(self) -> None:
        text = '{"a":"\x85\u2028\u2029"}'.encode()
        (data, _) = sse.error_frame(text, named=False).decode().splitlines()
        assert data == r'data: {"a":"\u0085\u2028\u2029"}'

    def test_has_no_name_before_1_0(self) -> None:
        assert sse.error_frame(b"{}", named=False) == b"data: {}\n\n"


class TestAKeepAlive:
    def test_is_a_comment_that_ends_no_event(self) -> None:
        """httpx-sse takes an empty line for an event once it has seen an id, and a2a-sdk 0.2.16 reads JSON of that."""
        for comment in (sse.KEEP_ALIVE, sse.write_gap(7)):
            assert comment.startswith(b":")
            assert (sse.frame(1, b"a") + comment + sse.frame(2, b"b")).count(b"\n\n") == 2
