"""Server-sent events, as bytes."""

from __future__ import annotations

from a2a_tasks.protocol import sse


class TestAFrame:
    def test_is_an_id_one_data_line_and_an_empty_line(self) -> None:
        assert sse.frame(7, b'{"a":1}') == b'id: 7\ndata: {"a":1}\n\n'

    def test_can_be_put_behind_another(self) -> None:
        joined = sse.frame(1, b"a") + sse.frame(2, b"b")
        assert joined.split(b"\n\n") == [b"id: 1\ndata: a", b"id: 2\ndata: b", b""]


class TestAnErrorFrame:
    def test_names_itself_and_has_no_id_to_resume_from(self) -> None:
        assert sse.error_frame(b"{}", named=True) == b"event: error\ndata: {}\n\n"

    def test_has_no_name_before_1_0(self) -> None:
        assert sse.error_frame(b"{}", named=False) == b"data: {}\n\n"


class TestAKeepAlive:
    def test_is_a_comment(self) -> None:
        assert sse.KEEP_ALIVE.startswith(b":")
        assert sse.KEEP_ALIVE.endswith(b"\n\n")
