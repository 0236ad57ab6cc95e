"""SubscribeToTask (A2A 1.0 §3.1.6): the Task as it is, then its events until it ends.

With `Last-Event-ID` (this host's extension) the client has the task already and gets the events after that number.
"""

from __future__ import annotations

from a2a_tasks.operations.call import Call
from a2a_tasks.protocol.dialects import Subject
from a2a_tasks.protocol.errors import TaskNotFound, UnsupportedOperation
from a2a_tasks.protocol.lifecycle import TERMINAL, Recorded
from a2a_tasks.protocol.requests import SubscribeToTaskRequest
from a2a_tasks.store.tasks import Found, finding
from a2a_tasks.streaming.follow import Follower
from a2a_tasks.streaming.stream import EventStream

__all__ = ["subscribe_to_task"]


def _ends(event: Recorded) -> bool:
    return event.state in TERMINAL


def _resumes(found: Found, subject: Subject, call: Call) -> bool:
    """Does the client go on after an event it has seen? One that is not of this task is no such event."""
    seen = call.last_event_id
    return seen is not None and seen.mark == subject.mark and seen.number <= found.last_event


async def subscribe_to_task(request: SubscribeToTaskRequest, call: Call) -> EventStream:
    """Follow a task. Raises TaskNotFound, UnsupportedOperation (it has ended, or the agent does not stream)."""
    call.permit("SubscribeToTask")
    found = await finding((call.scope(request.tenant), request.id))
    if found is None:
        raise TaskNotFound(taskId=request.id)
    subject = Subject.of(found.view)
    resumes = _resumes(found, subject, call)
    after = call.last_event_id.number if resumes and call.last_event_id else found.last_event
    ended = found.state in TERMINAL and after == found.last_event
    if ended and not request.lenient:
        raise UnsupportedOperation(f"The task is {found.state.word}", taskId=found.view.id)
    follower = await Follower.open(found.task, after=after, until=_ends, over=ended)
    return EventStream(
        subject=subject,
        first=None if resumes and not ended else found.view,
        number=found.last_event,
        follower=follower,
    )
