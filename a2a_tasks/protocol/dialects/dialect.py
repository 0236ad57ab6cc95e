"""What a dialect must be able to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from a2a_tasks.protocol.errors import A2AError
from a2a_tasks.protocol.lifecycle import Recorded
from a2a_tasks.protocol.requests import Request
from a2a_tasks.protocol.values import Raw, Task, TaskPage


class Dialect(Protocol):
    """One generation of the wire."""

    #: Stored on tasks and shown to people: `v10`.
    code: str
    #: What clients call it: `1.0`.
    version: str

    def decode(self, operation: str, params: Mapping[str, Any]) -> Request:
        """The request value. Raises InvalidParams naming each bad field, MethodNotFound."""
        ...

    def answer(self, operation: str, result: Task | Raw | TaskPage | Mapping[str, Any]) -> bytes:
        """The JSON of a result; a Raw is a direct Message."""
        ...

    def first(self, item: Task | Raw) -> bytes:
        """The JSON of a stream's first item: the Task, or the one direct Message."""
        ...

    def event(self, task_id: str, context_id: str, event: Recorded) -> bytes:
        """The JSON of a stream item for a recorded status or artifact event."""
        ...

    def error_details(self, error: A2AError) -> list[dict[str, object]]:
        """What JSON-RPC carries as `data`."""
        ...
