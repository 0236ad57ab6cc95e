"""Hooks for apps that keep rows of their own for tasks; these rows are written in the task's own transaction.

This app does not know the other apps: each registers its hooks when it is loaded (`AppConfig.ready`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from a2a_tasks.protocol.requests import SendMessageRequest

__all__ = ["Companion", "TaskHooks", "companions", "find_needed", "purge", "register", "succeed"]

#: Writes rows for the task with this primary key. An exception rolls back the message.
Companion = Callable[[int], None]


class TaskHooks:
    """Hooks of one app. Tasks are given by their primary keys. The defaults do nothing."""

    def on_accept(
        self, request: SendMessageRequest, task_id: str, dialect: str
    ) -> Companion | None:
        """Return a function that writes rows for the task of this message. Raises an A2AError to refuse the message."""
        return None

    def on_succeed(self, old: int, new: int) -> None:
        """Move the rows of task `old` to `new`, in the transaction in which `new` takes over its id."""

    def find_needed(self, tasks: Collection[int]) -> set[int]:
        """Return those of these tasks that must not be removed yet; their logs stay complete, too."""
        return set()

    def purge(self, limit: int) -> int:
        """Delete expired rows, at most `limit` in one transaction; return their number."""
        return 0


_registered: list[TaskHooks] = []


def register(hooks: TaskHooks) -> None:
    """Register hooks."""
    _registered.append(hooks)


def companions(request: SendMessageRequest, task_id: str, dialect: str) -> tuple[Companion, ...]:
    """Return the functions of all apps that write rows for the task of this message."""
    return tuple(filter(None, [h.on_accept(request, task_id, dialect) for h in _registered]))


def succeed(old: int, new: int) -> None:
    """Move the rows of all apps from task `old` to `new`. Called in the transaction that creates `new`."""
    for hooks in _registered:
        hooks.on_succeed(old, new)


def find_needed(tasks: Collection[int]) -> set[int]:
    """Return those of these tasks that an app still needs."""
    return {task for hooks in _registered for task in hooks.find_needed(tasks)}


def purge(limit: int) -> int:
    """Delete some expired rows of one app, and return their number; 0 = there are no more."""
    return next((gone for hooks in _registered if (gone := hooks.purge(limit))), 0)
