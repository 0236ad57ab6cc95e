"""The four push notification operations (A2A 1.0 §3.1.7 to §3.1.10).

Secrets are write-only: no answer contains them.
"""

from __future__ import annotations

from typing import Protocol

from a2a_push.operations.webhook import registrable
from a2a_push.store import configs
from a2a_tasks.caller import OwnerScope
from a2a_tasks.protocol.requests import (
    CreatePushConfigRequest,
    DeletePushConfigRequest,
    GetPushConfigRequest,
    ListPushConfigsRequest,
)
from a2a_tasks.protocol.values import PushConfig, PushConfigPage, replace
from a2a_tasks.store.db import run_in_thread

__all__ = [
    "CallContextForPush",
    "create_push_config",
    "delete_push_config",
    "get_push_config",
    "list_push_configs",
]


class CallContextForPush(Protocol):
    """The attributes of a call that these operations need (see a2a_tasks/operations/call_context.py)."""

    @property
    def dialect(self) -> str:
        """Code of the request's dialect."""

    def scope(self, tenant: str) -> OwnerScope:
        """Return the scope of the caller's objects."""


async def create_push_config(
    request: CreatePushConfigRequest, call: CallContextForPush
) -> PushConfig | None:
    """Register a webhook for a task, ended or not, or replace the one of that id; return None if it was deleted.

    Raises InvalidParams, TaskNotFound.
    """
    scope = call.scope(request.tenant)
    if request.clears:
        await run_in_thread(configs.delete, scope, request.config.task_id, request.config.id)
        return None
    config = registrable(request.config, request.config.task_id, call.dialect)
    return _of(request.tenant, await run_in_thread(configs.create, scope, config))


async def get_push_config(
    request: GetPushConfigRequest, call: CallContextForPush
) -> PushConfig | None:
    """Return one webhook of a task; None where there is none and the request is lenient.

    Raises TaskNotFound.
    """
    scope = call.scope(request.tenant)
    try:
        found = await run_in_thread(configs.get, scope, request.task_id, request.id)
    except configs.ConfigNotFound:
        if request.lenient:
            return None
        raise
    return _of(request.tenant, found)


async def list_push_configs(
    request: ListPushConfigsRequest, call: CallContextForPush
) -> PushConfigPage:
    """Return a page of a task's webhooks. Raises InvalidParams, TaskNotFound."""
    found = await run_in_thread(configs.page, call.scope(request.tenant), request)
    return replace(found, configs=[_of(request.tenant, config) for config in found.configs])


async def delete_push_config(request: DeletePushConfigRequest, call: CallContextForPush) -> None:
    """Delete a webhook; repetitions are no error. Raises TaskNotFound."""
    await run_in_thread(configs.delete, call.scope(request.tenant), request.task_id, request.id)


def _of(tenant: str, config: PushConfig) -> PushConfig:
    """Return the config with the tenant of the request."""
    return replace(config, tenant=tenant)
