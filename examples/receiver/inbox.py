"""What has arrived: each notification once, and each task's in order.

It is kept in memory, as much as a page can show. A receiver that matters keeps the ids it has handled in its database,
in the transaction that does what the notification is for.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from examples.receiver.reading import ENDS, Told

__all__ = ["Arrival", "Inbox"]

#: How many are remembered: to be shown, and for their ids or their order.
SHOWN, KNOWN = 200, 10_000
LONG_AGO = datetime.min.replace(tzinfo=UTC)

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request, and what became of it."""

    #: Seconds since 1970.
    at: float
    path: str
    id: str
    told: Told | None
    #: What was proven of its sender, in words; or why it was refused.
    proven: tuple[str, ...] = ()
    refused: str = ""
    #: Had it come before?
    again: bool = False
    #: Why it should not have come now; empty if it is in order.
    disorder: str = ""


@dataclass
class _Task:
    """How far a task has come, as we were told."""

    ended: str = ""
    moment: datetime = LONG_AGO
    #: By artifact: is it complete?
    artifacts: dict[str, bool] = field(default_factory=dict)

    def disorder(self, told: Told) -> str:
        """Why this cannot come now, if so; it counts either way."""
        why = self._artifact(told) if told.kind == "artifact" else self._status(told)
        if self.ended:
            why = f"the task was {self.ended} before"
        self.ended = self.ended or (told.state if told.state in ENDS else "")
        return why

    def _status(self, told: Told) -> str:
        earlier, moment = self.moment, _moment(told.moment) or self.moment
        self.moment = max(earlier, moment)
        return "a later status came before" if moment < earlier else ""

    def _artifact(self, told: Told) -> str:
        begun = told.artifact in self.artifacts
        complete = self.artifacts.get(told.artifact, False)
        self.artifacts[told.artifact] = told.last
        if not told.append or (begun and not complete):
            return ""
        return "its artifact was complete" if begun else "its artifact was not begun"


class Inbox:
    """The arrivals, for many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shown: deque[Arrival] = deque(maxlen=SHOWN)
        self._ids: OrderedDict[str, None] = OrderedDict()
        self._tasks: OrderedDict[str, _Task] = OrderedDict()
        self.counts = {"new": 0, "again": 0, "out of order": 0, "refused": 0}

    def take(self, *, at: float, path: str, id_: str, told: Told, proven: list[str]) -> Arrival:
        """Take in a notification that is the host's; handle it here, if it is new."""
        with self._lock:
            again = bool(id_) and id_ in self._ids
            _remember(self._ids, id_, None)
            disorder = "" if again or not told.task else self._task(told.task).disorder(told)
            self.counts["again" if again else "new"] += 1
            self.counts["out of order"] += bool(disorder)
            return self._show(
                Arrival(at, path, id_, told, proven=tuple(proven), again=again, disorder=disorder)
            )

    def refuse(self, *, at: float, path: str, id_: str, why: str) -> Arrival:
        """Show that there was one that may be anybody's."""
        with self._lock:
            self.counts["refused"] += 1
            return self._show(Arrival(at, path, id_, None, refused=why))

    def newest(self) -> list[Arrival]:
        """The last arrivals, newest first."""
        with self._lock:
            return list(reversed(self._shown))

    def _show(self, arrival: Arrival) -> Arrival:
        self._shown.append(arrival)
        return arrival

    def _task(self, name: str) -> _Task:
        return _remember(self._tasks, name, self._tasks.get(name) or _Task())


def _remember(known: OrderedDict[str, Value], name: str, value: Value) -> Value:
    """As the newest; the oldest are forgotten."""
    known[name] = value
    known.move_to_end(name)
    if len(known) > KNOWN:
        known.popitem(last=False)
    return value


def _moment(said: str) -> datetime | None:
    """A moment as A2A writes it (ISO 8601, UTC); None for anything else."""
    try:
        return datetime.fromisoformat(said).replace(tzinfo=UTC)
    except ValueError:
        return None
