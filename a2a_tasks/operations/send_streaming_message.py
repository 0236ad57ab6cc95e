"""SendStreamingMessage (A2A 1.0 §3.1.2): the Task, then its events to the end of the message's turn.

A repeated request under the same key gives the same stream; with `Last-Event-ID`, the events after that one.
"""

from __future__ import annotations

from a2a_tasks.conf import conf
from a2a_tasks.operations.call_context import CallContext
from a2a_tasks.operations.conversation import AcceptedSend, converse
from a2a_tasks.protocol.dialects import Subject
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.protocol.values import Task
from a2a_tasks.streaming.stream import EventStream

__all__ = ["send_streaming_message"]


async def send_streaming_message(request: SendMessageRequest, call: CallContext) -> EventStream:
    """Accept a message and return its stream, with the first item ready. The caller closes the stream."""
    conversation = await converse(request, call, pauses=request.pauses)
    try:
        first = await conversation.first(
            min(conf.FIRST_WORD_SECONDS, conf.KEEPALIVE_SECONDS or conf.FIRST_WORD_SECONDS)
        )
        if isinstance(first, Task):
            if seen := _read_last_event(conversation, call):
                return await _resume(conversation, seen, call)
            first = await conversation.start()
    except BaseException:
        await conversation.close()
        raise
    return EventStream(
        subject=Subject.of(first if isinstance(first, Task) else conversation.accepted.view),
        first=first,
        number=conversation.accepted.number,
        follower=conversation.follower,
        heard=conversation.events,
        shows_tools=call.shows_tools,
    )


def _read_last_event(conversation: AcceptedSend, call: CallContext) -> int:
    """Return the number of the event after which a repeated request continues; 0 if it begins."""
    seen, recalled = call.last_event_id, conversation.recalled
    if seen is None or recalled is None:
        return 0
    covered = recalled.accepted.number <= seen.number <= recalled.last_event
    return seen.number if covered and seen.mark == Subject.of(recalled.accepted.view).mark else 0


async def _resume(conversation: AcceptedSend, seen: int, call: CallContext) -> EventStream:
    """Return the rest of the stream after an event; the Task, if there is no rest."""
    rest = await conversation.reach(seen)
    over = conversation.follower.done and not rest
    return EventStream(
        subject=Subject.of(conversation.accepted.view),
        first=await conversation.task() if over else None,
        number=min(seen, conversation.follower.number),
        follower=conversation.follower,
        heard=rest,
        shows_tools=call.shows_tools,
    )
