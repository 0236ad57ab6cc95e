"""Webhooks for tests: one with every secret, and where secrets must not be."""

from __future__ import annotations

from typing import Any

from a2a_push.store import configs as stored
from a2a_tasks.caller import OwnerScope
from a2a_tasks.protocol.requests import ListPushConfigsRequest
from a2a_tasks.protocol.values import PushConfig, PushConfigPage
from tests.support.store.world import ALICE

__all__ = ["SECRETS", "config", "ids", "page", "registered", "tells_none"]

TOKEN, CREDENTIALS, HEADER = "token-7f3a", "credentials-91bc", "header-52de"
SECRETS = (TOKEN, CREDENTIALS, HEADER)
URL = "https://hooks.example.com/a2a?for=alice"


def config(id_: str = "c-1", **changes: Any) -> PushConfig:
    """A webhook of task-1 that has everything."""
    whole: dict[str, Any] = {
        "url": URL,
        "id": id_,
        "task_id": "task-1",
        "token": TOKEN,
        "schemes": ("Bearer", "Basic"),
        "credentials": CREDENTIALS,
        "headers": {"X-Key": HEADER},
        "dialect": "v10",
    }
    return PushConfig(**{**whole, **changes})


def registered(id_: str = "c-1", *, scope: OwnerScope = ALICE, **changes: Any) -> PushConfig:
    """A webhook in the store."""
    return stored.create(scope, config(id_, **changes))


def page(task: str = "task-1", *, scope: OwnerScope = ALICE, **asked: Any) -> PushConfigPage:
    """A page of a task's webhooks."""
    return stored.page(scope, ListPushConfigsRequest(task_id=task, **asked))


def ids(task: str = "task-1", *, scope: OwnerScope = ALICE) -> list[str]:
    """The ids of a task's webhooks."""
    return [found.id for found in page(task, scope=scope, page_size=100).configs]


def tells_none(text: object) -> None:
    """No secret is in it, as it is printed."""
    shown = f"{text!r} {text}"
    assert [secret for secret in SECRETS if secret in shown] == []
