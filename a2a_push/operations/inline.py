"""A webhook that comes with a message: stored with the task, before anything happens to it (A2A 1.0 §3.2.2)."""

from __future__ import annotations

import functools

from a2a_push.operations.webhook import registrable
from a2a_push.store import configs
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.store.companions import Companion

__all__ = ["inline"]


def inline(request: SendMessageRequest, task_id: str, dialect: str) -> Companion | None:
    """What is to be written beside the task of a message. Raises InvalidParams."""
    if request.push_config is None:
        return None
    config = registrable(request.push_config, task_id, dialect)
    return functools.partial(configs.put, config=config)
