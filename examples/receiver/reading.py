"""What a notification says, in whichever dialect: the item of a stream (1.0 and its draft), a Task (0.2, 0.3), a summary (0.1)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

__all__ = ["ENDS", "Told", "read"]

#: States after which nothing comes.
ENDS = frozenset({"completed", "failed", "canceled", "rejected"})
#: Members of a StreamResponse (A2A 1.0 §4.3.3), and what we call them.
ITEMS = {
    "task": "task",
    "statusUpdate": "status",
    "artifactUpdate": "artifact",
    "message": "message",
}


@dataclass(frozen=True, slots=True)
class Told:
    """A notification, as far as this receiver looks at it. What is not said is empty."""

    #: `task`, `status`, `artifact`, `message`, or `unknown`.
    kind: str
    task: str = ""
    #: In small letters, as `completed`, whatever the dialect says.
    state: str = ""
    #: When it came to that, as it was said.
    moment: str = ""
    artifact: str = ""
    #: Is it a piece that is added to an artifact? Is it the last one?
    append: bool = False
    last: bool = False
    #: The first words of it.
    text: str = ""


def read(body: bytes) -> Told:
    """Read a body. Raises ValueError if it is no JSON object."""
    said = json.loads(body)
    if not isinstance(said, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 - a body of the wrong kind is a wrong value
    for member, kind in ITEMS.items():
        if isinstance(said.get(member), dict):
            return _told(kind, said[member])
    known = "status" in said and ("id" in said or "taskId" in said)
    return _told("task" if known else "unknown", said)


def _told(kind: str, said: dict[str, Any]) -> Told:
    status, artifact = _member(said, "status"), _member(said, "artifact")
    return Told(
        kind=kind,
        task=_text(said.get("taskId") or (said.get("id") if kind == "task" else "")),
        state=_text(status.get("state")).removeprefix("TASK_STATE_").lower().replace("_", "-"),
        moment=_text(status.get("timestamp")),
        artifact=_text(artifact.get("artifactId")),
        append=said.get("append") is True,
        last=said.get("lastChunk") is True,
        text=_words(artifact or _member(status, "message") or said),
    )


def _words(said: dict[str, Any]) -> str:
    parts = said.get("parts")
    texts = (
        (part.get("text") for part in parts if isinstance(part, dict))
        if isinstance(parts, list)
        else ()
    )
    return " ".join(_text(text) for text in texts if text)[:200]


def _member(said: dict[str, Any], name: str) -> dict[str, Any]:
    found = said.get(name)
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
