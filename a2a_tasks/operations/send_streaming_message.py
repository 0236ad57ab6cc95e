"""SendStreamingMessage (A2A 1.0 §3.1.2): the Task, then its events to the end of the message's turn.

One that is sent again under its key gives the same stream; with `Last-Event-ID`, what comes after that event.
"""

from __future__ import annotations

from a2a_tasks.operations.call import Call
from a2a_tasks.operations.conversation import Conversation, converse
from a2a_tasks.operations.history import trimmed
from a2a_tasks.protocol.dialects import Subject
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.protocol.values import Raw, Task
from a2a_tasks.streaming.stream import EventStream

__all__ = ["send_streaming_message"]


async def send_streaming_message(request: SendMessageRequest, call: Call) -> EventStream:
    """Accept a message and return its stream, whose first item is there already. Close the stream."""
    call.permit("SendStreamingMessage")
    conversation = await converse(request, call, pauses=request.pauses)
    try:
        first = await conversation.first()
        if isinstance(first, Task) and (seen := _seen(conversation, call)):
            return await _resumed(conversation, seen, request.history_length)
    except BaseException:
        await conversation.close()
        raise
    view = conversation.accepted.view
    return EventStream(
        subject=Subject.of(view),
        first=first if isinstance(first, Raw) else trimmed(first, request.history_length),
        number=conversation.accepted.number,
        follower=conversation.follower,
        heard=conversation.heard,
    )


def _seen(conversation: Conversation, call: Call) -> int:
    """The number of the event after which a client goes on that sends again; 0 if it begins."""
    seen, recalled = call.last_event_id, conversation.recalled
    if seen is None or recalled is None:
        return 0
    known = recalled.accepted.number <= seen.number <= recalled.last_event
    return seen.number if known and seen.mark == Subject.of(recalled.accepted.view).mark else 0


async def _resumed(conversation: Conversation, seen: int, length: int | None) -> EventStream:
    """The rest of the stream after an event; the Task, if there is no rest."""
    rest = await conversation.reach(seen)
    over = conversation.follower.done and not rest
    return EventStream(
        subject=Subject.of(conversation.accepted.view),
        first=trimmed(await conversation.task(), length) if over else None,
        number=min(seen, conversation.follower.number),
        follower=conversation.follower,
        heard=rest,
    )
