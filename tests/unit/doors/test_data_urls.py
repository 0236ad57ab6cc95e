"""Files in data URLs of clients of OpenAI's API."""

from __future__ import annotations

import pytest

from a2a_doors.openai.request import read_chat
from a2a_tasks.protocol.errors import InvalidParams
from a2a_tasks.protocol.values import Part


def read(url: str) -> Part:
    """The part of an image with this URL."""
    item = {"type": "image_url", "image_url": {"url": url}}
    said = {"role": "user", "content": [item]}
    (part,) = read_chat({"model": "m", "messages": [said]}).read_parts()
    return part


@pytest.mark.parametrize(
    ("about", "media_type"),
    [
        ("image/png;base64", "image/png"),
        (";base64", "image/*"),
        ("image/png;name=a;;charset=x;base64", "image/png"),
        ("base64;base64", "base64"),
    ],
)
def test_are_read(about: str, media_type: str) -> None:
    part = read(f"data:{about},aGk=")
    assert (part.raw, part.media_type) == ("aGk=", media_type)


@pytest.mark.parametrize("url", ["data:", "data:,aGk=", "data:base64,aGk=", "data:a/b,hi"])
def test_without_base64_are_refused(url: str) -> None:
    with pytest.raises(InvalidParams):
        read(url)
