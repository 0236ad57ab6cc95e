"""What of a request reaches Django."""

from __future__ import annotations

from typing import Any

import pytest
from django.http.cookie import parse_cookie

from a2a_project.routing import MEDIA_BYTES, for_pages, refusal


def scope(*headers: tuple[bytes, bytes]) -> Any:
    return {"type": "http", "http_version": "1.1", "path": "/", "headers": list(headers)}


@pytest.mark.parametrize(
    ("given", "left"),
    [
        (b"sessionid=abc; csrftoken=def", {"sessionid": "abc", "csrftoken": "def"}),
        (b'a="b c"; sessionid=abc', {"a": "b c", "sessionid": "abc"}),
        (b'a="\\\\\\\\"; sessionid=abc', {"sessionid": "abc"}),
        (b'sessionid=abc; a="' + b"\\a" * 20_000 + b'"', {"sessionid": "abc"}),
        (b"\\", {}),
    ],
)
def test_cookies_with_a_backslash_do_not(given: bytes, left: dict[str, str]) -> None:
    seen = for_pages(scope((b"host", b"h"), (b"cookie", given)))
    assert seen["headers"][0] == (b"host", b"h")
    found = parse_cookie(seen["headers"][1][1].decode())
    assert {name: value for name, value in found.items() if name} == left


@pytest.mark.parametrize("name", [b"accept", b"content-type"])
def test_media_types_longer_than_any_are_refused(name: bytes) -> None:
    assert refusal(scope((name, b"a/b;" + b"x" * (MEDIA_BYTES - 4)))) == 0
    assert refusal(scope((name, b"a/b;" + b"x" * MEDIA_BYTES))) == 431
    assert refusal(scope((b"authorization", b"x" * 10_000))) == 0
