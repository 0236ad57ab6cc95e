"""SendStreamingMessage (A2A 1.0 §3.1.2): the Task, then its events to the end of the message's turn."""

from __future__ import annotations

import contextlib

from a2a_tasks.operations.call import Call
from a2a_tasks.operations.conversation import converse
from a2a_tasks.operations.history import trimmed
from a2a_tasks.protocol.errors import UnsupportedOperation
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.protocol.values import Raw
from a2a_tasks.streaming.stream import EventStream

__all__ = ["send_streaming_message"]


async def send_streaming_message(request: SendMessageRequest, call: Call) -> EventStream:
    """Accept a message and return its stream, whose first item is there already. Close the stream."""
    if not call.agent.streaming:
        raise UnsupportedOperation("The agent does not stream")
    async with contextlib.AsyncExitStack() as stack:
        conversation = await stack.enter_async_context(converse(request, call, at_auth=False))
        first = await conversation.first()
        accepted = conversation.accepted
        kept = stack.pop_all()
        return EventStream(
            task_id=accepted.view.id,
            context_id=accepted.view.context_id,
            first=first if isinstance(first, Raw) else trimmed(first, request.history_length),
            number=accepted.number,
            follower=conversation.follower,
            heard=conversation.heard,
            close=kept.aclose,
        )
