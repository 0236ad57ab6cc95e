"""SubscribeToTask (A2A 1.0 §3.1.6): the Task as it is, then its events until it ends.

With `Last-Event-ID` (this host's extension) the client has the task already and gets the events after that number; if
retention has removed some of them, the Task again, and it is told so.
"""

from __future__ import annotations

from a2a_tasks.operations.call import Call
from a2a_tasks.protocol.dialects import Subject
from a2a_tasks.protocol.errors import TaskNotFound, UnsupportedOperation
from a2a_tasks.protocol.lifecycle import TERMINAL, Recorded
from a2a_tasks.protocol.requests import SubscribeToTaskRequest
from a2a_tasks.store import log
from a2a_tasks.store.hop import hop
from a2a_tasks.store.tasks import Found, brief, finding
from a2a_tasks.streaming.follow import Follower
from a2a_tasks.streaming.stream import EventStream

__all__ = ["subscribe_to_task"]


def _ends(event: Recorded) -> bool:
    return event.state in TERMINAL


def _seen(found: Found, subject: Subject, call: Call) -> int | None:
    """The event after which the client goes on; None if it names none, or one that is not of this task."""
    seen = call.last_event_id
    known = seen is not None and seen.mark == subject.mark and seen.number <= found.last_event
    return seen.number if seen and known else None


async def _removed(found: Found, seen: int | None) -> int:
    """If events after the one seen were removed: the number before which there are none. Raises TaskNotFound."""
    if seen is None or seen == found.last_event:
        return 0
    begins = await hop(log.beginning, found.task)
    if begins is None:
        raise TaskNotFound(taskId=found.view.id)
    return begins if begins > seen + 1 else 0


async def subscribe_to_task(request: SubscribeToTaskRequest, call: Call) -> EventStream:
    """Follow a task. Raises TaskNotFound, UnsupportedOperation (it has ended, or the agent does not stream)."""
    call.permit("SubscribeToTask")
    key, resumes = (call.scope(request.tenant), request.id), call.last_event_id is not None
    found = await (hop(brief, *key) if resumes else finding(key))
    if found is None:
        raise TaskNotFound(taskId=request.id)
    subject = Subject.of(found.view)
    seen = _seen(found, subject, call)
    removed = await _removed(found, seen)
    over = found.state in TERMINAL and seen == found.last_event
    if resumes and (seen is None or removed or over):  # then it is told the Task
        found = await finding(key)
        if found is None:
            raise TaskNotFound(taskId=request.id)
    after = found.last_event if seen is None or removed else seen
    ended = found.state in TERMINAL and after == found.last_event
    if ended and not removed and not request.lenient:
        raise UnsupportedOperation(f"The task is {found.state.word}", taskId=found.view.id)
    follower = await Follower.open(found.task, after=after, until=_ends, over=ended)
    return EventStream(
        subject=subject,
        first=found.view if seen is None or removed or ended else None,
        number=found.last_event,
        follower=follower,
        removed=removed,
    )
