"""Push configs by resource name, `tasks/{task}/pushNotificationConfigs/{config}`: the draft, and 0.3 as ProtoJSON.

All published forms are read: the proto's (`parent`, `configId`, `config`), the text's (`taskId`,
`pushNotificationConfig`) and a bare config.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from a2a_tasks.protocol.dialects.reading import identifier, identity, page_size, push_config
from a2a_tasks.protocol.dialects.trees import Tree, TreeDialect
from a2a_tasks.protocol.fields import Fields
from a2a_tasks.protocol.requests import (
    CreatePushConfigRequest,
    DeletePushConfigRequest,
    GetPushConfigRequest,
    ListPushConfigsRequest,
)
from a2a_tasks.protocol.rest import Match, Route
from a2a_tasks.protocol.values import PushConfig, PushConfigPage, replace

__all__ = ["COMMON_ROUTES", "PushResources", "task_of"]

_CONFIGS = "v1/tasks/{taskId}/pushNotificationConfigs"
#: Routes below `/v1` that 0.3 and the draft share.
COMMON_ROUTES = (
    Route(("POST",), "v1/message:send", "SendMessage"),
    Route(("POST",), "v1/message:stream", "SendStreamingMessage"),
    Route(("GET",), "v1/tasks/{id}", "GetTask"),
    Route(("GET",), "v1/tasks", "ListTasks"),
    Route(("POST",), "v1/tasks/{id}:cancel", "CancelTask"),
    Route(("POST", "GET"), "v1/tasks/{id}:subscribe", "SubscribeToTask"),
    Route(("POST",), _CONFIGS, "CreateTaskPushNotificationConfig"),
    Route(("GET",), _CONFIGS, "ListTaskPushNotificationConfigs"),
    Route(("GET",), f"{_CONFIGS}/{{configId}}", "GetTaskPushNotificationConfig"),
    Route(("DELETE",), f"{_CONFIGS}/{{configId}}", "DeleteTaskPushNotificationConfig"),
)

#: Ids in resource names have `/` and `%` percent-encoded.
_TASK = re.compile(r"tasks/([^/]+)")
_CONFIG = re.compile(r"tasks/([^/]+)/pushNotification(?:Config)?s/([^/]+)")


def task_of(fields: Fields, *names: str) -> str:
    """Return the id of a task: a bare one under `id` or `taskId`, or from a resource name under one of `names`."""
    for name in names:
        found = fields.string(name)
        if found is not None:
            match = _TASK.fullmatch(found)
            if match is None and "/" in found:
                fields.bad(name, "must be tasks/{id}")
            return _id_in(match[1]) if match else found
    return fields.string("task_id") or identity(fields)


def _in_name(id_: str) -> str:
    return id_.replace("%", "%25").replace("/", "%2F")


def _id_in(name: str) -> str:
    return name.replace("%2F", "/").replace("%25", "%")


def _config_of(fields: Fields) -> tuple[str, str]:
    """Return the ids of task and config."""
    name = fields.string("name")
    if name is None:
        found = identifier(fields, "config_id", required=True)
        return task_of(fields), found or ""
    match = _CONFIG.fullmatch(name)
    if match is None:
        fields.bad("name", "must be tasks/{id}/pushNotificationConfigs/{id}")
        return "", ""
    return _id_in(match[1]), _id_in(match[2])


class PushResources(TreeDialect):
    """The push operations of a dialect that uses resource names for configs."""

    def read_create_push(self, fields: Fields) -> CreatePushConfigRequest:
        task_id = task_of(fields, "parent")
        outer = fields.object("config") or fields
        inner = outer.object("push_notification_config") or outer
        config = push_config(inner, self.code, task_id=task_id)
        chosen = identifier(fields, "config_id") or self._read_name(outer)
        named = any(fields.value(name) is not None for name in ("task_id", "parent"))
        if inner is fields and not named:
            config = replace(config, id="")  # that `id` was the task's
        return CreatePushConfigRequest(config=replace(config, id=chosen) if chosen else config)

    @staticmethod
    def _read_name(config: Fields) -> str:
        match = _CONFIG.fullmatch(config.string("name") or "")
        return _id_in(match[2]) if match else ""

    def read_get_push(self, fields: Fields) -> GetPushConfigRequest:
        task_id, config_id = _config_of(fields)
        return GetPushConfigRequest(task_id=task_id, id=config_id)

    def read_list_push(self, fields: Fields) -> ListPushConfigsRequest:
        return ListPushConfigsRequest(
            task_id=task_of(fields, "parent"),
            page_size=page_size(fields),
            page_token=fields.string("page_token") or "",
        )

    def read_delete_push(self, fields: Fields) -> DeletePushConfigRequest:
        task_id, config_id = _config_of(fields)
        return DeletePushConfigRequest(task_id=task_id, id=config_id)

    @staticmethod
    def under_path(match: Match, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a body or query without the names of task and config, which the path already has."""
        if not match.params:
            return fields
        return {key: value for key, value in fields.items() if key not in {"parent", "name"}}

    def config(self, config: PushConfig) -> Tree:
        """Return a PushNotificationConfig."""
        schemes = {"authentication": {"schemes": list(config.schemes)}} if config.schemes else {}
        return {"id": config.id, "url": config.url, **schemes}

    def push_config(self, config: PushConfig) -> Tree:
        name = f"tasks/{_in_name(config.task_id)}/pushNotificationConfigs/{_in_name(config.id)}"
        return {"name": name, "pushNotificationConfig": self.config(config)}

    def push_configs(self, page: PushConfigPage) -> Any:
        configs = [self.push_config(config) for config in page.configs]
        return {"configs": configs, "nextPageToken": page.next_page_token}
