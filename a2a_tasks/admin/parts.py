"""The parts of messages and artifacts, each shown as what it is: text, Markdown, JSON, a picture, sound, a file, a link.

They were written by strangers. Text is text; Markdown and JSON become HTML in `markdown` and `json_tree`, and nowhere else;
bytes are never in the page but behind an address of their own, which runs nothing (`inert`).
"""

from __future__ import annotations

import mimetypes
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from django.utils.safestring import SafeString

from a2a_tasks.admin import markdown
from a2a_tasks.admin.json_tree import Allowance, tree
from a2a_tasks.admin.shown import LIMIT, named, sendable
from a2a_tasks.protocol.files import SCHEME
from a2a_tasks.protocol.media_types import plain

__all__ = ["PDF", "SHOWN", "Part", "Reading", "finished", "joined", "read", "type_of"]

#: Parts of one message or artifact that are shown.
MOST = 50
#: What browsers show without running it. An SVG is shown as an image, where it runs nothing.
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
#: What has an address that shows it.
SHOWN = IMAGES | SOUNDS
#: Characters of a media type.
TYPE = 100


@dataclass(kw_only=True)
class Reading:
    """How one page reads parts."""

    #: Address of the task's page, without its last word.
    base: str
    #: Is all text taken for Markdown?
    all_markdown: bool = False
    allowance: Allowance = field(default_factory=Allowance)


@dataclass(frozen=True, kw_only=True)
class Part:
    """One part as the page has it."""

    #: text, markdown, json, image, audio, pdf, file, link or other
    kind: str
    text: str = ""
    html: SafeString | None = None
    #: Characters of the text, or bytes.
    size: int = 0
    name: str = ""
    media_type: str = ""
    #: Where it is shown, and where it is had to be saved; empty = nowhere.
    url: str = ""
    save: str = ""

    @property
    def is_cut(self) -> bool:
        """Is there more of the text than is shown?"""
        return self.kind in {"text", "markdown"} and self.size > len(self.text)

    @property
    def label(self) -> str:
        """What a link to it says."""
        return self.name or self.media_type or self.kind


def read(holder: Any, place: str, reading: Reading) -> list[Part]:
    """The parts of a message or an artifact. `place` is where its parts have addresses: `event/5`."""
    found = holder.get("parts") if isinstance(holder, dict) else None
    parts = found if isinstance(found, list) else []
    return [
        _part(part, f"{reading.base}parts/{place}/{index}/", reading)
        for index, part in enumerate(parts[:MOST])
        if isinstance(part, dict)
    ]


def finished(parts: Iterable[Part], reading: Reading) -> tuple[Part, ...]:
    """The parts as they are shown, with Markdown rendered."""
    return tuple(_with_html(part, reading) for part in parts)


def joined(pieces: Iterable[Part], reading: Reading) -> tuple[Part, ...]:
    """The same with text that follows text as one: artifacts come in pieces of words."""
    found: list[Part] = []
    for part in pieces:
        last = found[-1] if found else None
        if last and part.kind == last.kind and part.kind in {"text", "markdown"}:
            text = (last.text + part.text)[:LIMIT]
            found[-1] = replace(last, text=text, size=last.size + part.size, save="")
        else:
            found.append(part)
    return finished(found, reading)


def _with_html(part: Part, reading: Reading) -> Part:
    if part.kind != "markdown" or part.html is not None:
        return part
    if len(part.text) > min(markdown.LONGEST, reading.allowance.markdown):
        return replace(part, kind="text")
    reading.allowance.markdown -= len(part.text)
    return replace(part, html=markdown.rendered(part.text))


def _part(part: dict[str, Any], address: str, reading: Reading) -> Part:
    media_type = named(type_of(part), TYPE)
    name = named(part["filename"]) if isinstance(part.get("filename"), str) else ""
    bare = Part(kind="other", name=name, media_type=media_type)
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
    """What a part is said to be; of a file of which nothing is said, what its name means."""
    said, name = part.get("mediaType"), part.get("filename")
    if isinstance(said, str) and said:
        return said
    return mimetypes.guess_type(name)[0] or "" if isinstance(name, str) else ""


def _text(text: str, address: str, bare: Part, reading: Reading) -> Part:
    is_markdown = reading.all_markdown or plain(bare.media_type) in MARKDOWN
    return replace(
        bare,
        kind="markdown" if is_markdown else "text",
        text=sendable(text[:LIMIT]),
        size=len(text),
        save=f"{address}?save" if len(text) > LIMIT else "",
    )


def _file(url: str, save: str, size: int, bare: Part) -> Part:
    media_type = plain(bare.media_type)
    kind = "image" if media_type in IMAGES else "audio" if media_type in SOUNDS else "file"
    if media_type == PDF:
        kind = "pdf"
    return replace(bare, kind=kind, url=url, save=save, size=size)


def _url(url: str, bare: Part, reading: Reading) -> Part:
    if url.startswith(SCHEME):
        try:
            key = uuid.UUID(url.removeprefix(SCHEME))
        except ValueError:
            return bare
        address = f"{reading.base}files/{key}/"
        return _file(f"{address}?show", address, 0, bare)
    shown = named(url, LIMIT)
    is_web = url.lower().startswith(("https://", "http://"))
    return replace(bare, kind="link", text=shown, url=url if is_web else "")
