"""Hooks of webhooks in the life of tasks.

A webhook that comes with a message is stored with its task, before any of its events (A2A 1.0 §3.2.2).
"""

from __future__ import annotations

import functools
from collections.abc import Collection

from a2a_push.operations.webhook import registrable
from a2a_push.store import configs, retention
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.store.hooks import Companion, TaskHooks

__all__ = ["WebhookHooks"]


class WebhookHooks(TaskHooks):
    """The hooks: webhooks come with messages, move to a task's successor, and keep tasks with unsent events."""

    def on_accept(
        self, request: SendMessageRequest, task_id: str, dialect: str
    ) -> Companion | None:
        """Return the function that writes the webhook of the message; None if the message has none.

        Raises InvalidParams.
        """
        if request.push_config is None:
            return None
        config = registrable(request.push_config, task_id, dialect)
        return functools.partial(configs.put, config=config)

    def on_succeed(self, old: int, new: int) -> None:
        """Move the webhooks to the new task."""
        configs.move(old, new)

    def find_needed(self, tasks: Collection[int]) -> set[int]:
        """Return the tasks with events that are still to be sent."""
        return retention.find_undelivered(tasks)

    def purge(self, limit: int) -> int:
        """Delete old deliveries, and receivers without webhooks."""
        return retention.forget(limit)
