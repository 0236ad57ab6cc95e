"""References to tasks by operators: the public id, or the host's own number (`#17`)."""

from __future__ import annotations

from a2a_tasks.models import Task

__all__ = ["parse_task_reference"]

#: The largest number of tasks of one id: clients choose ids, and more than a few with the same id are abuse.
MAX_COUNT = 100
NUMBER = "#"
LARGEST = 2**63 - 1


def parse_task_reference(name: str) -> list[int]:
    """Return the primary keys of the tasks, newest first: several owners may have one of the same id."""
    if "\x00" in name:
        return []
    digits = name.removeprefix(NUMBER)
    if name.startswith(NUMBER) and digits.isascii() and digits.isdigit():
        rows = Task.objects.filter(pk=min(int(digits[:20]), LARGEST))
    else:
        rows = Task.objects.filter(public_id=name)
    return list(rows.order_by("-pk").values_list("pk", flat=True)[:MAX_COUNT])
