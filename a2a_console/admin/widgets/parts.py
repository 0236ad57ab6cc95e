"""The parts of messages and artifacts for display: text, Markdown, JSON, images, audio, files, links.

Parts are untrusted. Text stays text; only `markdown` and `json_tree` make HTML of Markdown and JSON. Bytes are never
in the page but have their own URL, whose response runs nothing (`inert`).
"""

from __future__ import annotations

import mimetypes
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from django.utils.safestring import SafeString

from a2a_console.admin.widgets import markdown
from a2a_console.admin.widgets.formatting import escape_name, sendable
from a2a_console.admin.widgets.json_tree import Allowance, tree
from a2a_console.excerpts import LIMIT
from a2a_tasks.protocol.files import SCHEME
from a2a_tasks.protocol.media_types import plain

__all__ = ["PDF", "SHOWN", "ShownPart", "Reading", "render_parts", "join_texts", "read", "type_of"]

#: The largest number of shown parts of one message or artifact.
MAX_COUNT = 50
#: Types that browsers show without running code. An SVG is shown as an image, where it runs nothing.
IMAGES = {
    *("image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"),
    "image/svg+xml",
}
SOUNDS = {
    *("audio/mpeg", "audio/mp4", "audio/aac", "audio/ogg", "audio/opus", "audio/wav"),
    *("audio/x-wav", "audio/wave", "audio/webm", "audio/flac"),
}
PDF = "application/pdf"
MARKDOWN = {"text/markdown", "text/x-markdown"}
#: Types with a URL that shows the content inline.
SHOWN = IMAGES | SOUNDS
#: The largest number of characters of a media type.
TYPE = 100


@dataclass(kw_only=True)
class Reading:
    """The options with which one page reads parts."""

    #: The URL of the task's page, without its last segment.
    base: str
    #: True if text of no declared type is rendered as Markdown.
    all_markdown: bool = False
    allowance: Allowance = field(default_factory=Allowance)


@dataclass(frozen=True, kw_only=True)
class ShownPart:
    """One part for the page."""

    #: text, markdown, json, image, audio, pdf, file, link or other
    kind: str
    text: str = ""
    html: SafeString | None = None
    #: The size in characters of text, or in bytes.
    size: int = 0
    name: str = ""
    media_type: str = ""
    #: The URLs that show and that download the part; empty = none.
    url: str = ""
    save: str = ""

    @property
    def is_cut(self) -> bool:
        """True if only a part of the text is shown."""
        return self.kind in {"text", "markdown"} and self.size > len(self.text)

    @property
    def label(self) -> str:
        """The label of a link to the part."""
        return self.name or self.media_type or self.kind


def read(holder: Any, place: str, reading: Reading) -> list[ShownPart]:
    """Return the parts of a message or an artifact. `place` is the path of their URLs: `event/5`."""
    found = holder.get("parts") if isinstance(holder, dict) else None
    parts = found if isinstance(found, list) else []
    return [
        _part(part, f"{reading.base}parts/{place}/{index}/", reading)
        for index, part in enumerate(parts[:MAX_COUNT])
        if isinstance(part, dict)
    ]


def render_parts(parts: Iterable[ShownPart], reading: Reading) -> tuple[ShownPart, ...]:
    """Return the parts with Markdown rendered."""
    return tuple(_with_html(part, reading) for part in parts)


def join_texts(pieces: Iterable[ShownPart], reading: Reading) -> tuple[ShownPart, ...]:
    """Return the parts with consecutive texts joined: streamed artifacts come in chunks of a few words."""
    found: list[ShownPart] = []
    for part in pieces:
        last = found[-1] if found else None
        if last and part.kind == last.kind and part.kind in {"text", "markdown"}:
            text = (last.text + part.text)[:LIMIT]
            found[-1] = replace(last, text=text, size=last.size + part.size, save="")
        else:
            found.append(part)
    return render_parts(found, reading)


def _with_html(part: ShownPart, reading: Reading) -> ShownPart:
    if part.kind != "markdown" or part.html is not None:
        return part
    if len(part.text) > min(markdown.MAX_LENGTH, reading.allowance.markdown):
        return replace(part, kind="text")
    reading.allowance.markdown -= len(part.text)
    return replace(part, html=markdown.render(part.text))


def _part(part: dict[str, Any], address: str, reading: Reading) -> ShownPart:
    media_type = escape_name(type_of(part), TYPE)
    name = escape_name(part["filename"]) if isinstance(part.get("filename"), str) else ""
    bare = ShownPart(kind="other", name=name, media_type=media_type)
    if isinstance(part.get("text"), str):
        return _text(part["text"], address, bare, reading)
    if "data" in part:
        html = tree(part["data"], reading.allowance)
        return replace(bare, kind="json", html=html, save=f"{address}?save")
    if isinstance(part.get("raw"), str):
        size = len(part["raw"]) * 3 // 4
        return _file(address, f"{address}?save", size, bare)
    if isinstance(part.get("url"), str):
        return _url(part["url"], bare, reading)
    return bare


def type_of(part: dict[str, Any]) -> str:
    """Return the media type of a part; without one, that of its file name."""
    media_type, name = part.get("mediaType"), part.get("filename")
    if isinstance(media_type, str) and media_type:
        return media_type
    return mimetypes.guess_type(name)[0] or "" if isinstance(name, str) else ""


def _text(text: str, address: str, bare: ShownPart, reading: Reading) -> ShownPart:
    is_markdown = plain(bare.media_type) in (MARKDOWN | {""} if reading.all_markdown else MARKDOWN)
    return replace(
        bare,
        kind="markdown" if is_markdown else "text",
        text=sendable(text[:LIMIT]),
        size=len(text),
        save=f"{address}?save" if len(text) > LIMIT else "",
    )


def _file(url: str, save: str, size: int, bare: ShownPart) -> ShownPart:
    media_type = plain(bare.media_type)
    kind = "image" if media_type in IMAGES else "audio" if media_type in SOUNDS else "file"
    if media_type == PDF:
        kind = "pdf"
    return replace(bare, kind=kind, url=url, save=save, size=size)


def _url(url: str, bare: ShownPart, reading: Reading) -> ShownPart:
    if url.startswith(SCHEME):
        try:
            key = uuid.UUID(url.removeprefix(SCHEME))
        except ValueError:
            return bare
        address = f"{reading.base}files/{key}/"
        return _file(f"{address}?show", address, 0, bare)
    shown = escape_name(url, LIMIT)
    is_web = url.lower().startswith(("https://", "http://"))
    return replace(bare, kind="link", text=shown, url=url if is_web else "")
