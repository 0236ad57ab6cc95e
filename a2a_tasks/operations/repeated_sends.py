"""Recognition of requests repeated under a key (`Idempotency-Key`, or the message's id where the agent says so)."""

from __future__ import annotations

import asyncio
import weakref

from a2a_tasks.operations.call_context import CallContext
from a2a_tasks.protocol.idempotency import fingerprint, name_of_key, name_of_message
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.store.idempotency import IdempotencyKey

__all__ = ["key_of", "lock_key"]

_turnstiles: weakref.WeakValueDictionary[tuple[int, IdempotencyKey], asyncio.Lock] = (
    weakref.WeakValueDictionary()
)


def key_of(request: SendMessageRequest, call: CallContext) -> IdempotencyKey | None:
    """Return the key that identifies a repeated request; None if it has none. Raises InvalidParams for a bad header.

    The key belongs to the caller alone, also where the callers of a tenant share their tasks. The header takes
    precedence over the message's id. Where clients name their tasks, messages have no ids of their own.
    """
    if call.idempotency_key is not None:
        name = name_of_key(call.idempotency_key)
    elif call.agent.idempotent_message_ids and not request.named:
        name = name_of_message(request)
    else:
        return None
    return IdempotencyKey(
        call.caller.own(call.agent.slug, request.tenant),
        name,
        fingerprint(request, call.extensions),
    )


def lock_key(key: IdempotencyKey) -> asyncio.Lock:
    """Return the lock of a key: in this process one request of a key at a time is looked up and accepted.

    The lock only saves work. Between processes the unique name decides.
    """
    place = (id(asyncio.get_running_loop()), key)
    found = _turnstiles.get(place)
    if found is None:
        found = _turnstiles[place] = asyncio.Lock()
    return found
