"""Requests that clients repeat without saying so: an equal one of the same caller joins the first, for some seconds."""

from __future__ import annotations

from a2a_tasks.operations.call_context import CallContext
from a2a_tasks.protocol.idempotency import fingerprint, name_of_key
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import clock
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.idempotency import list_uses

__all__ = ["name_repeat"]

#: The ends after which an equal request is a new attempt.
UNFIT = frozenset({TaskState.CANCELED, TaskState.FAILED, TaskState.REJECTED})
#: Most tasks that equal requests begin in one span; further ones join the last.
ATTEMPTS = 5


async def name_repeat(request: SendMessageRequest, call: CallContext, seconds: float) -> str | None:
    """Return the `Idempotency-Key` that equal requests share in these seconds; None if the time is 0.

    Time is cut into spans as long. A request looks for the newest equal one of this span and the span before. It joins
    that one, if it is young enough, and its task works, waits or has completed.
    """
    if not seconds:
        return None
    content, span = fingerprint(request, call.extensions), int(clock.estimate() // seconds)
    names = [f"repeat {content} {n} {k}" for n in (span - 1, span) for k in range(ATTEMPTS)]
    own = call.caller.own(call.agent.slug, request.tenant)
    used = await run_in_thread(list_uses, own, [name_of_key(name) for name in names])
    taken = [name for name in names if name_of_key(name) in used]
    if taken:
        state, age = used[name_of_key(taken[-1])]
        if age <= seconds and state not in UNFIT:
            return taken[-1]
    free = (name for name in names[ATTEMPTS:] if name not in taken)
    return next(free, names[-1])
