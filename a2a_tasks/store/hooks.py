"""Rows that another app keeps for a task, written in the task's own transaction: all of them, or none.

This app knows nothing of it; the other one registers its hooks when it is loaded (`AppConfig.ready`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from a2a_tasks.protocol.requests import SendMessageRequest

__all__ = ["Companion", "TaskHooks", "companions", "find_needed", "purge", "register", "succeed"]

#: Writes beside the task with this primary key. What it raises undoes the message it came with.
Companion = Callable[[int], None]


class TaskHooks:
    """The rows that an app keeps beside tasks, which are named by their primary keys. By default there are none."""

    def on_accept(
        self, request: SendMessageRequest, task_id: str, dialect: str
    ) -> Companion | None:
        """Return the rows to write with the task of this message. Raises an A2AError to refuse the message."""
        return None

    def on_succeed(self, old: int, new: int) -> None:
        """Take what is kept beside `old` to `new`, in the transaction in which that takes over its id."""

    def find_needed(self, tasks: Collection[int]) -> set[int]:
        """Those of these tasks that must not be removed yet, nor anything of their log."""
        return set()

    def purge(self, limit: int) -> int:
        """Remove what is past its time, at most so many rows in one transaction; return how many."""
        return 0


_registered: list[TaskHooks] = []


def register(hooks: TaskHooks) -> None:
    """Register hooks."""
    _registered.append(hooks)


def companions(request: SendMessageRequest, task_id: str, dialect: str) -> tuple[Companion, ...]:
    """Everything to be written beside the task of this message."""
    found = (hooks.on_accept(request, task_id, dialect) for hooks in _registered)
    return tuple(companion for companion in found if companion is not None)


def succeed(old: int, new: int) -> None:
    """Take to task `new` what is kept beside task `old`. Called inside the transaction that makes `new`."""
    for hooks in _registered:
        hooks.on_succeed(old, new)


def find_needed(tasks: Collection[int]) -> set[int]:
    """Those of these tasks that an app still needs."""
    return {task for hooks in _registered for task in hooks.find_needed(tasks)}


def purge(limit: int) -> int:
    """Remove some of what is past its time; 0 = there is nothing any more."""
    return next((gone for hooks in _registered if (gone := hooks.purge(limit))), 0)
