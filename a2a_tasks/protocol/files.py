"""Files stored outside the log: a part refers to one by an internal URL, which answers replace by a link.

Stored text holds `"url":"a2a-file:<32 hexadecimal digits>"`. Clients and agents cannot use such a URL for another
caller's file, so each one in a stored part was written by the host. Text without this mark is not parsed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from a2a_tasks.protocol.lifecycle import LogEvent
from a2a_tasks.protocol.values import UNSET, Part, Raw, Task, TaskPage, UnsetType, replace

__all__ = [
    "SCHEME",
    "Link",
    "file_of",
    "in_answer",
    "in_event",
    "in_task",
    "in_text",
    "reference",
    "refers",
]

SCHEME = "a2a-file:"
#: No text inside a JSON string matches this mark: there, a quote has a backslash before it.
_MARK = f'"url":"{SCHEME}'.encode()
_MARK_TEXT = _MARK.decode()
_REFERENCE = re.compile(re.escape(SCHEME) + r"([0-9a-f]{32})")
#: Members of a stored body that may have parts, besides the body itself.
_HOLDERS = ("status", "message", "artifact")
#: Maps the id of a file to the URL that a client gets.
Link = Callable[[str], str]

_members = msgspec.json.Decoder(dict[str, Raw]).decode
_items = msgspec.json.Decoder(list[Raw]).decode
_text = msgspec.json.Decoder(str).decode
_encode = msgspec.json.Encoder().encode


def reference(file_id: str) -> str:
    """Return the URL by which a stored part refers to a file."""
    return SCHEME + file_id


def file_of(part: Part) -> str | None:
    """Return the id of the file a part refers to; None if it refers to none."""
    found = _REFERENCE.fullmatch(part.url) if isinstance(part.url, str) else None
    return found[1] if found else None


def refers(text: bytes | str) -> bool:
    """Return whether this stored text may refer to a file."""
    return _MARK_TEXT in text if isinstance(text, str) else _MARK in text


def in_text(text: bytes, link: Link) -> bytes:
    """Replace file references in a stored message, artifact, status or event by links; all else stays unchanged."""
    if _MARK not in text:
        return text
    members = _members(text)
    for name in _HOLDERS:
        if name in members:
            members[name] = Raw(in_text(bytes(members[name]), link))
    if "parts" in members:
        parts = [_part(bytes(part), link) for part in _items(members["parts"])]
        members["parts"] = Raw(_encode(parts))
    return _encode(members)


def _part(part: bytes, link: Link) -> Raw:
    if _MARK in part:
        members = _members(part)
        found = _REFERENCE.fullmatch(_text(members["url"])) if "url" in members else None
        if found:
            return Raw(_encode({**members, "url": link(found[1])}))
    return Raw(part)


def _raw(text: Raw, link: Link) -> Raw:
    plain = bytes(text)
    return Raw(in_text(plain, link)) if _MARK in plain else text


def _raws(texts: Sequence[Raw] | UnsetType, link: Link) -> list[Raw] | UnsetType:
    return UNSET if isinstance(texts, UnsetType) else [_raw(text, link) for text in texts]


def _task_refers(task: Task) -> bool:
    texts = [task.status.message] if task.status.message else []
    texts += [] if task.history is UNSET else task.history
    texts += [] if task.artifacts is UNSET else task.artifacts
    return True in [_MARK in bytes(text) for text in texts]


def in_task(task: Task, link: Link) -> Task:
    """Return the task with links to its files."""
    if not _task_refers(task):
        return task
    status = task.status
    if status.message:
        status = replace(status, message=_raw(status.message, link))
    return replace(
        task,
        status=status,
        history=_raws(task.history, link),
        artifacts=_raws(task.artifacts, link),
    )


def in_answer(answer: Any, link: Link) -> Any:
    """Return a Task, a page of tasks or a direct Message with links to their files; anything else unchanged."""
    match answer:
        case Task():
            return in_task(answer, link)
        case Raw():
            return _raw(answer, link)
        case TaskPage():
            return replace(answer, tasks=[in_task(task, link) for task in answer.tasks])
    return answer


def in_event(event: LogEvent, link: Link) -> LogEvent:
    """Return the event with links to its files."""
    if _MARK_TEXT not in event.body:
        return event
    return replace(event, body=in_text(event.body.encode(), link).decode())
