"""A2A 0.1 (May 2025): the wire format of April 2025 with a longer specification."""

from __future__ import annotations

from a2a_tasks.protocol.dialects.reading import identity
from a2a_tasks.protocol.dialects.v00 import V00
from a2a_tasks.protocol.fields import Fields
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.requests import CreatePushConfigRequest
from a2a_tasks.protocol.values import PushConfig, Task

__all__ = ["V01"]


class V01(V00):
    """The dialect 0.1; see `V00`."""

    code, version, title = "v01", "0.1", "0.1"
    path, admits = "0.1", frozenset({"0.1"})
    pushes_content = False
    token_headers = ("X-A2A-Token", *V00.token_headers)

    def read_create_push(self, fields: Fields) -> CreatePushConfigRequest:
        """Read a config, where null deletes the task's config."""
        name = "push_notification_config"
        if not fields.has(name) or fields.value(name) is not None:
            return super().read_create_push(fields)
        task_id = identity(fields)
        nothing = PushConfig(url="", id=task_id, task_id=task_id, dialect=self.code)
        return CreatePushConfigRequest(config=nothing, clears=True)

    def push_task(self, task: Task) -> bytes:
        """Return an object with both forms that the texts of 0.1 describe."""
        status = self.status_of(task.status)
        ended = {"finalStatus": status} if task.status.state in TERMINAL else {}
        return write({"eventType": "taskUpdate", "taskId": task.id, "status": status, **ended})
