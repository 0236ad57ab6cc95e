"""SubscribeToTask (A2A 1.0 §3.1.6): the Task in its present state, then its events until it ends.

With `Last-Event-ID` (this host's extension) the client has the task already and gets the events after that number. If
retention has removed some of them, the client gets the Task again, and a notice of the gap.
"""

from __future__ import annotations

from a2a_tasks.operations.call_context import CallContext
from a2a_tasks.protocol.dialects import Subject
from a2a_tasks.protocol.errors import TaskNotFound, UnsupportedOperation
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.requests import SubscribeToTaskRequest
from a2a_tasks.store import event_log
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.tasks import FoundTask, brief, find_batched
from a2a_tasks.streaming.stream import EventReader, EventStream

__all__ = ["subscribe_to_task"]


def _read_last_event(found: FoundTask, subject: Subject, call: CallContext) -> int | None:
    """Return the event after which the client continues; None if it names none, or one of another task."""
    seen = call.last_event_id
    resumes = seen is not None and seen.mark == subject.mark and seen.number <= found.last_event
    return seen.number if seen and resumes else None


async def _find_gap(found: FoundTask, seen: int | None) -> int:
    """Return the first number after a gap of removed events since the one seen, or 0. Raises TaskNotFound."""
    if seen is None or seen == found.last_event:
        return 0
    begins = await run_in_thread(event_log.find_first_number, found.task)
    if begins is None:
        raise TaskNotFound(taskId=found.view.id)
    return begins if begins > seen + 1 else 0


async def subscribe_to_task(request: SubscribeToTaskRequest, call: CallContext) -> EventStream:
    """Follow a task. Raises TaskNotFound, and UnsupportedOperation if the task has ended."""
    key, resumes = (call.scope(request.tenant), request.id), call.last_event_id is not None
    found = await (run_in_thread(brief, *key) if resumes else find_batched(key))
    if found is None:
        raise TaskNotFound(taskId=request.id)
    subject = Subject.of(found.view)
    seen = _read_last_event(found, subject, call)
    removed = await _find_gap(found, seen)
    over = found.state in TERMINAL and seen == found.last_event
    if resumes and (seen is None or removed or over):  # then the Task is sent
        found = await find_batched(key)
        if found is None:
            raise TaskNotFound(taskId=request.id)
    after = found.last_event if seen is None or removed else seen
    ended = found.state in TERMINAL and after == found.last_event
    if ended and not removed and not request.lenient:
        raise UnsupportedOperation(f"The task is {found.state.word}", taskId=found.view.id)
    follower = await EventReader.open(
        found.task, after=after, until=lambda event: event.state in TERMINAL, over=ended
    )
    return EventStream(
        subject=subject,
        first=found.view if seen is None or removed or ended else None,
        number=found.last_event,
        follower=follower,
        removed=removed,
        shows_tools=call.shows_tools,
    )
