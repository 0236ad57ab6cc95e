"""A request for a chat completion: its messages as parts of a message of A2A, and as the history that they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from a2a_tasks.protocol.errors import InvalidParams
from a2a_tasks.protocol.fields import canonical_base64
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.media_types import MAX_LENGTH, UNKNOWN, media_type_of
from a2a_tasks.protocol.values import Part

__all__ = ["Chat", "ChatMessage", "read_chat"]

#: Messages that are no part of the conversation: front ends change them with every request, by the time for example.
INSTRUCTIONS = {"system", "developer"}
#: The beginning of a data URL, and the end of what stands there before the comma.
DATA, BASE64 = "data:", ";base64"


class ChatMessage(msgspec.Struct, frozen=True):
    """One message; members that are not here are ignored."""

    role: str
    content: str | list[dict[str, Any]] | None = None

    @property
    def items(self) -> list[dict[str, Any]]:
        """The content as a list of items."""
        if isinstance(self.content, str):
            return [{"type": "text", "text": self.content}]
        return self.content or []

    @property
    def text(self) -> str:
        """The texts, as they are."""
        if isinstance(self.content, str):
            return self.content
        found = [item.get("text") for item in self.items if item.get("type") == "text"]
        return "".join(text for text in found if isinstance(text, str))

    @property
    def entry(self) -> list[str]:
        """The message as part of a history: role, text, and the other items of a user."""
        if not isinstance(self.content, list):
            return [self.role, self.text]
        others = [item for item in self.content if item.get("type") != "text"]
        shown = [write(item).decode() for item in others] if self.role == "user" else []
        return [self.role, self.text, *shown]


class Chat(msgspec.Struct, frozen=True):
    """The members of a request that the host knows; all others are ignored."""

    model: str
    messages: list[ChatMessage]
    stream: bool | None = None
    stream_options: dict[str, Any] | None = None
    n: int | None = None
    tool_choice: Any = None
    response_format: Any = None

    @property
    def history(self) -> list[ChatMessage]:
        """The messages of the conversation."""
        return [one for one in self.messages if one.role not in INSTRUCTIONS]

    @property
    def instructions(self) -> str:
        """The text of all instructions."""
        return "\n\n".join(one.text for one in self.messages if one.role in INSTRUCTIONS)

    @property
    def wants_usage(self) -> bool:
        """True if the stream is to end with the usage."""
        return bool((self.stream_options or {}).get("include_usage"))

    def read_parts(self) -> tuple[Part, ...]:
        """Return the parts of the last message. Raises InvalidParams."""
        at = f"messages[{len(self.messages) - 1}].content"
        items = self.messages[-1].items
        if not items:
            raise InvalidParams.field(at, "must not be empty")
        return tuple(_read_item(item, f"{at}[{index}]") for index, item in enumerate(items))

    def transcript(self) -> str:
        """Return the messages before the last one, for an agent that has not seen them; empty = there are none."""
        said = [f"{one.role}: {one.text}" for one in self.history[:-1] if one.text]
        return "\n\n".join(["Conversation so far:", *said]) if said else ""


def read_chat(document: Any) -> Chat:
    """Return the request in a JSON document. Raises InvalidParams for what cannot be done, named."""
    try:
        chat = msgspec.convert(document, Chat)
    except msgspec.ValidationError as fault:
        words, _, path = str(fault).partition(" - at `$")
        raise InvalidParams.field(path.removeprefix(".").removesuffix("`"), words) from None
    if found := next(_list_refused(chat), None):
        raise InvalidParams.field(*found)
    return chat


def _list_refused(chat: Chat) -> Iterator[tuple[str, str]]:
    if not chat.messages or chat.messages[-1].role != "user":
        yield "messages", "must end with a message of the user"
    if (chat.n or 1) != 1:
        yield "n", "must be 1: an agent gives one answer"
    if chat.tool_choice not in (None, "none", "auto"):
        yield "tool_choice", "must not force a tool: agents use tools of their own"
    if isinstance(chat.response_format, dict) and chat.response_format.get("type") == "json_schema":
        yield "response_format", "must not be json_schema: agents choose the form of their answers"


def _read_item(item: dict[str, Any], at: str) -> Part:
    """Return an item of a content as a part. Raises InvalidParams."""
    kind = item.get("type")
    about = item.get(str(kind))
    try:
        match kind:
            case "text" if isinstance(about, str):
                return Part(text=about)
            case "image_url":
                return _read_url(about["url"], "image/*")  # type: ignore[index]
            case "file":
                return _read_url(about["file_data"], UNKNOWN, about.get("filename"))  # type: ignore[index, union-attr]
            case "input_audio":
                kind = {"mp3": "mpeg"}.get(about["format"], about["format"])  # type: ignore[index]
                return _make_raw(about["data"], f"audio/{kind}", None)  # type: ignore[index]
    except (TypeError, KeyError, ValueError):
        raise InvalidParams.field(at, f"is no {kind} that can be read here") from None
    raise InvalidParams.field(at, "must be a text, image_url, input_audio or file with its data")


def _read_url(url: Any, fallback: str, filename: Any = None) -> Part:
    if not (isinstance(url, str) and isinstance(filename, str | None)):
        raise TypeError
    about, _, data = url.partition(",")
    if about.startswith(DATA) and about.endswith(BASE64):
        media_type = about.removeprefix(DATA).partition(";")[0]
        return _make_raw(data, media_type or fallback, filename)
    if url.startswith(("https://", "http://")):
        part = Part(url=url, filename=filename)
        guessed = media_type_of(part)
        return Part(url=url, filename=filename, media_type=fallback if guessed == UNKNOWN else None)
    named = Part(raw="", filename=filename)
    return _make_raw(url, media_type_of(named), filename)


def _make_raw(data: Any, media_type: str, filename: str | None) -> Part:
    if not isinstance(data, str) or len(media_type) > MAX_LENGTH:
        raise TypeError
    return Part(raw=canonical_base64(data), filename=filename, media_type=media_type)
