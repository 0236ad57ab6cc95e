"""One turn of a task, from a stream of its events: the text as it comes, and the end."""

from __future__ import annotations

from collections.abc import AsyncIterator

from a2a_doors.texts import Telling, show_message, show_task
from a2a_tasks.protocol.files import in_answer, in_event
from a2a_tasks.protocol.lifecycle import (
    INTERRUPTED,
    TERMINAL,
    EventKind,
    LogEvent,
    read_status_body,
)
from a2a_tasks.protocol.values import Task, TaskState, TaskStatus
from a2a_tasks.streaming.stream import EventStream

__all__ = ["TurnText"]

ENDS = TERMINAL | INTERRUPTED


class TurnText:
    """The text of a turn. After the last piece, `status` is how it ended; None = it goes on."""

    def __init__(self, stream: EventStream) -> None:
        self._stream = stream
        self._telling = Telling()
        self._pieces: list[str] = []
        self.status: TaskStatus | None = None

    @property
    def text(self) -> str:
        """All text so far."""
        return "".join(self._pieces)

    @property
    def failed(self) -> bool:
        """True if the turn has ended without an answer."""
        return self.status is not None and self.status.state in TERMINAL - {TaskState.COMPLETED}

    @property
    def words(self) -> str:
        """The words of the agent, or of the host, about a turn that has failed."""
        assert self.status is not None  # noqa: S101 - it has ended
        said = show_message(self.status.message) if self.status.message else ""
        return said or f"The task is {self.status.state.word}"

    async def pieces(self, idle_seconds: float) -> AsyncIterator[str]:
        """Yield the text in pieces; an empty one after so many seconds without an event."""
        if self._stream.follower.done:
            yield self._tell_task()
        self._stream.take_first()  # nothing keeps it from here on
        async for events in self._stream.batches(idle_seconds):
            if events is None:
                yield self._tell_task()
                continue
            text = "".join(map(self._tell, events))
            if text or not events:
                self._pieces.append(text)
                yield text
            if self.status is not None:
                break
        if self.status is not None and not self.failed and (text := self._telling.finish()):
            self._pieces.append(text)
            yield text

    def _tell(self, event: LogEvent) -> str:
        if self.status is not None:
            return ""
        if self._stream.link is not None:
            event = in_event(event, self._stream.link)
        if event.kind is EventKind.STATUS and event.state in ENDS:
            self.status = read_status_body(event.body)
        return self._telling.tell(event)

    def _tell_task(self) -> str:
        """Return the text of the whole task, where the events of the turn are not there any more."""
        task = self._stream.take_first()
        if not isinstance(task, Task):
            return ""
        if self._stream.link is not None:
            task = in_answer(task, self._stream.link)
        if task.status.state in ENDS:
            self.status = task.status
        text = "" if self.failed else self._telling.add(show_task(task))
        self._pieces.append(text)
        return text
