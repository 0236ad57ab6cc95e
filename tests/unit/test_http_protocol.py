"""An offer of another protocol is taken out of a head before uvicorn's parser sees it."""

from __future__ import annotations

import pytest

from a2a_project.http_protocol import without_upgrade

HEAD = b"POST / HTTP/1.1\r\nHost: h\r\n"
BODY = b"a\r\nUpgrade: of the body"


@pytest.mark.parametrize(
    ("came", "read"),
    [
        (HEAD + b"Upgrade: h2c\r\n\r\n" + BODY, HEAD + b"X-Offered: h2c\r\n\r\n" + BODY),
        (HEAD + b"uPGRADE : h2c\r\n\r\n", HEAD + b"X-Offered : h2c\r\n\r\n"),
        (b"Upgrade: h2c\r\n\r\n" + BODY, b"X-Offered: h2c\r\n\r\n" + BODY),  # a second piece
        (HEAD + b"\r\n" + BODY, HEAD + b"\r\n" + BODY),
        (HEAD + b"X-Upgrade: 1\r\n\r\n", HEAD + b"X-Upgrade: 1\r\n\r\n"),
        (HEAD, HEAD),
    ],
)
def test_only_the_lines_of_the_head_are_renamed(came: bytes, read: bytes) -> None:
    assert without_upgrade(came) == read
