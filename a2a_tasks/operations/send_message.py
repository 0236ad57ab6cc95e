"""SendMessage (A2A 1.0 §3.1.1): a Task when it has settled, or at once if requested, or a direct Message."""

from __future__ import annotations

from a2a_tasks.conf import conf
from a2a_tasks.operations.call_context import CallContext
from a2a_tasks.operations.conversation import converse
from a2a_tasks.protocol.lifecycle import INTERRUPTED
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.protocol.values import Raw, Task

__all__ = ["send_message"]


async def send_message(request: SendMessageRequest, call: CallContext) -> Task | Raw:
    """Accept a message. Returns the Task, or the direct Message as JSON."""
    at_once = request.return_immediately
    conversation = await converse(request, call, pauses=INTERRUPTED)
    del request  # it may be large, and the wait long
    try:
        if isinstance(first := await conversation.first(conf.FIRST_WORD_SECONDS), Raw):
            return first
        del first
        if not at_once:
            return await conversation.wait_settled()
        recalled = conversation.recalled is not None
        return await (conversation.current() if recalled else conversation.task())
    finally:
        await conversation.close()
