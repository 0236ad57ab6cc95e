"""Which media type a part is of, and whether it is among an agent's modes."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_tasks.protocol.media_types import admits, media_type_of
from a2a_tasks.protocol.values import Part


@pytest.mark.parametrize(
    ("modes", "media_type", "admitted"),
    [
        (["text/plain"], "text/plain", True),
        (["text/plain"], "TEXT/Plain; charset=utf-8", True),
        (["text/plain; charset=utf-8"], "text/plain", True),
        (["text/plain"], "text/html", False),
        (["image/*"], "image/png", True),
        (["image/*"], "images/png", False),
        (["image/*"], "image", True),
        (["*/*"], "anything/at-all", True),
        (["image/png", "application/json"], "application/json", True),
        ([], "text/plain", False),
        (["text/plain"], "*/*", False),
    ],
)
def test_modes_admit_by_type_kind_and_star(
    modes: list[str], media_type: str, admitted: bool
) -> None:
    assert admits(modes, media_type) is admitted


@pytest.mark.parametrize(
    ("part", "media_type"),
    [
        ({"text": "x"}, "text/plain"),
        ({"text": "x", "media_type": "text/markdown"}, "text/markdown"),
        ({"data": None}, "application/json"),
        ({"raw": "eA==", "filename": "a.png"}, "image/png"),
        ({"raw": "eA==", "filename": "a.png", "media_type": "text/plain"}, "text/plain"),
        ({"raw": "eA=="}, "application/octet-stream"),
        ({"raw": "eA==", "filename": "noextension"}, "application/octet-stream"),
        ({"raw": "eA==", "filename": "a.tar.gz"}, "application/octet-stream"),
        ({"url": "https://example.com/a.pdf?x=1#y"}, "application/pdf"),
        ({"url": "https://example.com"}, "application/octet-stream"),
        ({"url": "https://example.com/a.pdf", "filename": "b.png"}, "image/png"),
    ],
)
def test_a_part_is_what_it_says_or_what_its_name_means(
    part: dict[str, Any], media_type: str
) -> None:
    assert media_type_of(Part(**part)) == media_type
