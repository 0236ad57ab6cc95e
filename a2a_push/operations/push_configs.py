"""The four push notification operations (A2A 1.0 §3.1.7 to §3.1.10). Secrets are write-only: no answer has them."""

from __future__ import annotations

from typing import Protocol

from a2a_push.operations.webhook import registrable
from a2a_push.store import configs
from a2a_tasks.caller import Scope
from a2a_tasks.protocol.errors import PushNotificationNotSupported
from a2a_tasks.protocol.requests import (
    CreatePushConfigRequest,
    DeletePushConfigRequest,
    GetPushConfigRequest,
    ListPushConfigsRequest,
)
from a2a_tasks.protocol.values import PushConfig, PushConfigPage, replace
from a2a_tasks.store.hop import hop

__all__ = [
    "Circumstances",
    "create_push_config",
    "delete_push_config",
    "get_push_config",
    "list_push_configs",
]


class Pushing(Protocol):
    """What is asked of an agent here."""

    @property
    def push_notifications(self) -> bool:
        """May clients register webhooks?"""


class Circumstances(Protocol):
    """What is asked of a call here (see a2a_tasks/operations/call.py)."""

    @property
    def agent(self) -> Pushing:
        """The agent whose tasks are meant."""

    @property
    def dialect(self) -> str:
        """Code of the dialect spoken."""

    def scope(self, tenant: str) -> Scope:
        """The drawer the caller's objects lie in."""


async def create_push_config(
    request: CreatePushConfigRequest, call: Circumstances
) -> PushConfig | None:
    """Register a webhook for a task, ended or not, or replace the one of that id; None if it was to be cleared.

    Raises PushNotificationNotSupported, InvalidParams, TaskNotFound.
    """
    scope = _scope(request.tenant, call)
    if request.clears:
        await hop(configs.delete, scope, request.config.task_id, request.config.id)
        return None
    config = registrable(request.config, request.config.task_id, call.dialect)
    return _of(request.tenant, await hop(configs.create, scope, config))


async def get_push_config(request: GetPushConfigRequest, call: Circumstances) -> PushConfig | None:
    """One webhook of a task; None where there is none and the request is lenient.

    Raises PushNotificationNotSupported, TaskNotFound.
    """
    scope = _scope(request.tenant, call)
    try:
        found = await hop(configs.get, scope, request.task_id, request.id)
    except configs.ConfigNotFound:
        if request.lenient:
            return None
        raise
    return _of(request.tenant, found)


async def list_push_configs(request: ListPushConfigsRequest, call: Circumstances) -> PushConfigPage:
    """A page of a task's webhooks. Raises PushNotificationNotSupported, InvalidParams, TaskNotFound."""
    found = await hop(configs.page, _scope(request.tenant, call), request)
    return replace(found, configs=[_of(request.tenant, config) for config in found.configs])


async def delete_push_config(request: DeletePushConfigRequest, call: Circumstances) -> None:
    """Take a webhook away, however often. Raises PushNotificationNotSupported, TaskNotFound."""
    await hop(configs.delete, _scope(request.tenant, call), request.task_id, request.id)


def _scope(tenant: str, call: Circumstances) -> Scope:
    """The caller's drawer, if the agent has webhooks at all (A2A 1.0 §3.3.4)."""
    if not call.agent.push_notifications:
        raise PushNotificationNotSupported
    return call.scope(tenant)


def _of(tenant: str, config: PushConfig) -> PushConfig:
    """The config with the tenant it was asked for by."""
    return replace(config, tenant=tenant)
