"""Tasks as an operator names them: by the id that their owners know, or by the host's own number (`#17`)."""

from __future__ import annotations

from a2a_tasks.models import Task

__all__ = ["named"]

#: Tasks of one id that are looked at: the owners choose ids, and more than a few of one are somebody's joke.
MOST = 100
NUMBER = "#"
LARGEST = 2**63 - 1


def named(name: str) -> list[int]:
    """The primary keys of the tasks called so, newest first: several owners may have one of the same id."""
    if "\x00" in name:
        return []
    digits = name.removeprefix(NUMBER)
    if name.startswith(NUMBER) and digits.isascii() and digits.isdigit():
        rows = Task.objects.filter(pk=min(int(digits[:20]), LARGEST))
    else:
        rows = Task.objects.filter(public_id=name)
    return list(rows.order_by("-pk").values_list("pk", flat=True)[:MOST])
