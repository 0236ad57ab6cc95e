"""The memory of a turn: a dict that refuses values that cannot be stored, so that the author's line raises."""

from __future__ import annotations

from typing import Any

from a2a_tasks.agents.author_errors import keepable

__all__ = ["Memory"]


class Memory(dict[str, Any]):
    """A dict of JSON values: any other value raises TypeError when it is set.

    Changes within a value are checked when the turn ends.
    """

    def __setitem__(self, key: str, value: Any) -> None:
        ((key, value),) = keepable("turn.memory", {key: value}).items()
        super().__setitem__(key, value)

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Act as the method of a dict does, with checks."""
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *members: Any, **named: Any) -> None:
        """Act as the method of a dict does, with checks. Values before a refused one are kept."""
        for key, value in dict(*members, **named).items():
            self[key] = value

    def __ior__(self, members: Any) -> Memory:  # type: ignore[override,misc]
        self.update(members)
        return self
