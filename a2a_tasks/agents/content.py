"""Parts for the messages and artifacts of agents."""

from __future__ import annotations

import base64
from typing import Any

from a2a_tasks.protocol.values import Part

__all__ = ["Content", "data", "file", "link", "parts", "text"]

#: Content from an agent: a str is text.
Content = str | Part


def text(value: str, *, media_type: str | None = None) -> Part:
    """Return a text part."""
    return Part(text=value, media_type=media_type)


def data(value: Any) -> Part:
    """Return a data part with any JSON value."""
    return Part(data=value)


def file(content: bytes, filename: str, media_type: str) -> Part:
    """Return a part with a file by value."""
    return Part(raw=base64.b64encode(content).decode(), filename=filename, media_type=media_type)


def link(url: str, *, filename: str | None = None, media_type: str | None = None) -> Part:
    """Return a part with a file by reference."""
    return Part(url=url, filename=filename, media_type=media_type)


def parts(content: tuple[Content, ...]) -> tuple[Part, ...]:
    """Convert content to parts. Raises TypeError for a value that is neither text nor a part."""
    for item in content:
        if not isinstance(item, str | Part):
            raise TypeError(f"{type(item).__name__} cannot be content: give a str or a Part")
    return tuple(Part(text=item) if isinstance(item, str) else item for item in content)
