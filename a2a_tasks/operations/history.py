"""The length of the history in an answer (A2A 1.0 §3.2.4)."""

from __future__ import annotations

from a2a_tasks.protocol.values import UNSET, Task, replace

__all__ = ["trim_history"]


def trim_history(task: Task, length: int | None) -> Task:
    """Return the task with at most `length` newest messages, oldest first; None = all, 0 = no history at all."""
    if length is None or task.history is UNSET or len(task.history) <= length:
        return task
    return replace(task, history=task.history[-length:] if length else UNSET)
