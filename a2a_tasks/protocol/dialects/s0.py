"""The informal specification before April 2025 (seed-0): `created`, flat push configs, cards by `agent/getCard`."""

from __future__ import annotations

from a2a_tasks.protocol import errors
from a2a_tasks.protocol.dialects.reading import identity
from a2a_tasks.protocol.dialects.trees import Tree
from a2a_tasks.protocol.dialects.v00 import V00
from a2a_tasks.protocol.errors import MethodNotFound
from a2a_tasks.protocol.fields import Fields
from a2a_tasks.protocol.requests import CreatePushConfigRequest, SubscribeToTaskRequest
from a2a_tasks.protocol.values import PushConfig, TaskState

__all__ = ["S0"]

#: Replaces secret values in answers.
MASK = "***"


class S0(V00):
    """The dialect seed-0; its base is that of April 2025."""

    code, version, title = "s0", "", "seed-0"
    path, admits = "seed-0", frozenset[str]()
    names_headers, has_metadata = True, False
    methods = {
        "agent/getCard": "GetAgentCard",
        **{method: name for method, name in V00.methods.items() if method != "tasks/resubscribe"},
    }
    states = {**V00.states, TaskState.SUBMITTED: "created"}
    faces = {
        **V00.faces,
        errors.ContextMismatch: (-32002, "Session not found"),
        errors.PushNotificationNotSupported: (-32003, "Push notification not supported"),
        # The dialect has no code for this error; -32000 is in the range that JSON-RPC reserves for servers.
        errors.TaskNotCancelable: (-32000, errors.TaskNotCancelable.title),
    }

    def read_subscribe(self, fields: Fields) -> SubscribeToTaskRequest:
        raise MethodNotFound

    def read_create_push(self, fields: Fields) -> CreatePushConfigRequest:
        headers = fields.struct("headers") or {}
        if not all(isinstance(value, str) for value in headers.values()):
            fields.bad("headers", "must be an object of strings")
            headers = {}
        config = PushConfig(
            url=fields.string("url", required=True) or "",
            task_id=identity(fields),
            headers=headers,
            dialect=self.code,
        )
        return CreatePushConfigRequest(config=config)

    def push_config(self, config: PushConfig) -> Tree:
        return {"url": config.url, "headers": dict.fromkeys(config.headers, MASK)}
