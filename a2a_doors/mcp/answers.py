"""Tasks as results of tools: everything is in the text, because many clients show nothing else to their models."""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from a2a_doors.texts import DONE, GAP, show_message, show_parts
from a2a_tasks.conf import conf
from a2a_tasks.protocol.lifecycle import INTERRUPTED
from a2a_tasks.protocol.media_types import media_type_of
from a2a_tasks.protocol.values import UNSET, Artifact, Part, Task, TaskState

__all__ = ["make_error", "make_handle", "make_result", "show_status"]

_artifact = msgspec.json.Decoder(Artifact).decode
FAILED = frozenset({TaskState.FAILED, TaskState.REJECTED})
#: Milliseconds after which a client is to look for a task again.
POLL_MS = 1000
STATUSES = {
    TaskState.INPUT_REQUIRED: "input_required",
    TaskState.COMPLETED: "completed",
    TaskState.FAILED: "completed",
    TaskState.REJECTED: "completed",
    TaskState.CANCELED: "cancelled",
}


def show_status(task: Task) -> str:
    """Return the text of the task's present status."""
    return show_message(task.status.message) if task.status.message else ""


def make_error(text: str) -> dict[str, Any]:
    """Return the result of a call that the agent did not get."""
    content = [{"type": "text", "text": text}]
    return {"resultType": "complete", "content": content, "isError": True}


def make_handle(task: Task, slug: str) -> dict[str, Any]:
    """Return the members that tell of a task in the extension of tasks."""
    days = float(conf.RETENTION_DAYS)
    told = {
        "taskId": f"{slug}/{task.id}",
        "status": STATUSES.get(task.status.state, "working"),
        "createdAt": task.status.timestamp,
        "lastUpdatedAt": task.status.timestamp,
        "ttlMs": int(days * 86_400_000) if days else None,
        "pollIntervalMs": POLL_MS,
    }
    return {**told, "statusMessage": words} if (words := show_status(task)) else told


def make_result(task: Task, slug: str, note: str = "") -> dict[str, Any]:
    """Return the answer of a task: its text, its images, and its data, if it has some. `note` is said at the end."""
    artifacts = [] if task.artifacts is UNSET else [_artifact(text) for text in task.artifacts]
    parts = [part for artifact in artifacts for part in artifact.parts]
    texts = [_tell(artifact.parts) for artifact in artifacts]
    if task.status.state is TaskState.CANCELED:
        texts.append("The task was cancelled.")
    whole = GAP.join(filter(None, [*texts, show_status(task), note])) or DONE
    # These are for programs: as `structuredContent` they would hide the text from some models.
    ids = {"agent": slug, "taskId": task.id, "contextId": task.context_id}
    result: dict[str, Any] = {
        "resultType": "complete",
        "content": [{"type": "text", "text": whole}, *_list_images(parts)],
        "isError": task.status.state in FAILED,
        "_meta": {"a2a-host": {**ids, "state": task.status.state.word}},
    }
    data = [part.data for part in parts if part.data is not UNSET]
    if data and task.status.state not in INTERRUPTED:
        result["structuredContent"] = {"text": whole, "data": data[0] if len(data) == 1 else data}
    return result


def _list_images(parts: list[Part]) -> list[dict[str, Any]]:
    """Return the images; sound and other files end the run of some clients, and are only named."""
    return [
        {"type": "image", "data": part.raw, "mimeType": media_type_of(part)}
        for part in parts
        if isinstance(part.raw, str) and media_type_of(part).startswith("image/")
    ]


def _tell(parts: tuple[Part, ...]) -> str:
    """Return the text of an artifact. In the place of bytes is the name of a file, and its content if that is text."""
    if not any(isinstance(part.raw, str) for part in parts):
        return show_parts(parts)
    return GAP.join(filter(None, (show_parts([_name_file(part)]) for part in parts)))


def _name_file(part: Part) -> Part:
    if not isinstance(part.raw, str):
        return part
    content, media_type = base64.b64decode(part.raw), media_type_of(part)
    name = f"{part.filename or 'File'} ({media_type}, {len(content)} bytes)"
    is_text = media_type.startswith("text/")
    return Part(text=f"{name}:\n{content.decode(errors='replace')}" if is_text else name)
