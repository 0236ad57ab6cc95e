"""What this process has done for webhooks, to be counted: plain numbers, read by whoever shows them."""

from __future__ import annotations

from collections import Counter

__all__ = ["attempts", "under_way"]

#: Attempts by how they ended: `delivered`, or the kind of the fault (`a2a_tasks.outbound.Kind`).
attempts: Counter[str] = Counter()
#: Requests on their way.
under_way = 0
