"""The events of tools: each call and each result is told once in a task, bounded and without credentials."""

from __future__ import annotations

import functools
import re
from collections import Counter
from typing import Any

import msgspec

from a2a_tasks.agents.emission import StatusUpdate, ToolEvent, data
from a2a_tasks.agents.host_extensions import TOOL_EVENTS
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.soundness import check_json
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.db import retry_until_answered, run_in_thread
from a2a_tasks.store.event_log import read_tool_bodies
from a2a_tasks.telemetry.redaction import redact, redact_value

__all__ = ["ToolEvents"]

#: Bytes of the JSON of arguments or a content; of larger ones, the beginning is kept as text.
MAX_BYTES = 16 * 1024
MAX_ID_LENGTH = 256
#: The number of a call with a repeated id.
_NUMBER = re.compile(r"#[0-9]+\Z")


class _StoredToolEvent(msgspec.Struct):
    """The members of a stored event that say what was told."""

    class Status(msgspec.Struct):
        class Message(msgspec.Struct):
            class Part(msgspec.Struct):
                data: dict[str, Any]

            parts: list[Part]

        message: Message

    status: Status


_decode = msgspec.json.Decoder(_StoredToolEvent).decode


class ToolEvents:
    """The events of tools in a task, as the run that holds it knows them."""

    def __init__(self, task: int, turn: int) -> None:
        """Make the events of a task; `turn` is the number of the event that began the turn."""
        self._task, self._turn = task, turn
        #: The number of results that earlier turns had for an id.
        self._ended: Counter[str] = Counter()
        #: Kind and id of what was told; None = not read yet.
        self._told: set[tuple[str, str]] | None = None

    async def prepare(self, event: ToolEvent) -> StatusUpdate | None:
        """Return an event as it is recorded; None if an earlier attempt or turn told it.

        Raises ValueError for an id that is none, TransactionRefused.
        """
        if not isinstance(event.id, str) or not 0 < len(event.id) <= MAX_ID_LENGTH:
            raise ValueError(
                f"the id of a tool call must be a str of 1 to {MAX_ID_LENGTH} characters"
            )
        if self._told is None:
            self._told = await self._read()
        id_ = self._make_unique(event)
        if (event.kind, id_) in self._told:
            return None
        shown = {"id": id_} | {key: _show(value) for key, value in event.about.items()}
        self._told.add((event.kind, id_))
        return StatusUpdate(
            TaskState.WORKING, (data({event.kind: shown}),), extensions=(TOOL_EVENTS.uri,)
        )

    async def _read(self) -> set[tuple[str, str]]:
        """Read what was told, and count the results of earlier turns."""
        read = functools.partial(run_in_thread, read_tool_bodies, self._task)
        told: set[tuple[str, str]] = set()
        for number, body in await retry_until_answered(read, repeatable=True):
            for kind, about in _decode(body).status.message.parts[0].data.items():
                told.add((kind, about["id"]))
                if kind == "toolResult" and number < self._turn:
                    self._ended.update({about["id"], _NUMBER.sub("", about["id"])})
        return told

    def _make_unique(self, event: ToolEvent) -> str:
        """Return an id that is unique in the task, and the same in every attempt of the turn: `call_0`, `call_0#2`."""
        number = event.number and self._ended[event.id] + event.number
        return f"{event.id}#{number}" if number > 1 else str(event.id)


def _show(value: Any) -> Any:
    """Return a value without credentials; a large one as text, cut with a mark, and one that is no JSON as its repr."""
    try:
        check_json(value)
        whole = write(value)
    except (TypeError, ValueError, RecursionError):
        value = ascii(value)
        whole = write(value)
    if len(whole) <= MAX_BYTES:
        return redact_value(msgspec.json.decode(whole))
    text = value if isinstance(value, str) else whole.decode()
    # No credential is cut in two before it is found.
    start = redact(text[: MAX_BYTES + 1000]).encode()[:MAX_BYTES]
    return f"{start.decode(errors='ignore')} … [cut, {len(whole)} bytes]"
