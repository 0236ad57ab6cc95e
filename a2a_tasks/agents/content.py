"""Making parts: what an agent puts into messages and artifacts."""

from __future__ import annotations

import base64
from typing import Any

from a2a_tasks.protocol.values import Part

__all__ = ["Content", "data", "file", "link", "parts", "text"]

#: What is taken wherever an agent gives content: a str is text.
Content = str | Part


def text(value: str, *, media_type: str | None = None) -> Part:
    """A text part."""
    return Part(text=value, media_type=media_type)


def data(value: Any) -> Part:
    """A JSON part: anything JSON can say."""
    return Part(data=value)


def file(content: bytes, filename: str, media_type: str) -> Part:
    """A file by value."""
    return Part(raw=base64.b64encode(content).decode(), filename=filename, media_type=media_type)


def link(url: str, *, filename: str | None = None, media_type: str | None = None) -> Part:
    """A file by reference."""
    return Part(url=url, filename=filename, media_type=media_type)


def parts(content: tuple[Content, ...]) -> tuple[Part, ...]:
    """Content as parts. Raises TypeError for what is neither text nor a part."""
    for item in content:
        if not isinstance(item, str | Part):
            raise TypeError(f"{type(item).__name__} is not content: give a str or a Part")
    return tuple(Part(text=item) if isinstance(item, str) else item for item in content)
