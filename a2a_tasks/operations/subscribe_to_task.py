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


def _begin_after(found: Found, request: SubscribeToTaskRequest, call: Call) -> int:
    """The number the client has seen; what it has not seen yet cannot be skipped."""
    seen = found.last_event if call.last_event_id is None else call.last_event_id
    seen = min(seen, found.last_event)
    if found.state in TERMINAL and seen == found.last_event and not request.lenient:
        raise UnsupportedOperation(f"The task is {found.state.word}", taskId=found.view.id)
    return seen


async def subscribe_to_task(request: SubscribeToTaskRequest, call: Call) -> EventStream:
    """Follow a task. Raises TaskNotFound, UnsupportedOperation (it has ended, or the agent does not stream)."""
    call.permit("SubscribeToTask")
    found = await finding((call.scope(request.tenant), request.id))
    if found is None:
        raise TaskNotFound(taskId=request.id)
    after = _begin_after(found, request, call)
    ended = found.state in TERMINAL and after == found.last_event
    follower = await Follower.open(found.task, after=after, until=_ends, over=ended)
    return EventStream(
        subject=Subject.of(found.view),
        first=found.view if call.last_event_id is None or ended else None,
        number=found.last_event,
        follower=follower,
    )
