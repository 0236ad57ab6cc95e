"""SendStreamingMessage (A2A 1.0 §3.1.2): the Task, then its events to the end of the message's turn."""

from __future__ import annotations

from a2a_tasks.operations.call import Call
from a2a_tasks.operations.conversation import converse
from a2a_tasks.operations.history import trimmed
from a2a_tasks.protocol.dialects import Subject
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.protocol.values import Raw
from a2a_tasks.streaming.stream import EventStream

__all__ = ["send_streaming_message"]


async def send_streaming_message(request: SendMessageRequest, call: Call) -> EventStream:
    """Accept a message and return its stream, whose first item is there already. Close the stream."""
    call.permit("SendStreamingMessage")
    conversation = await converse(request, call, pauses=request.pauses)
    try:
        first = await conversation.first()
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
