"""A request that comes again under its key (`Idempotency-Key`, or the message's id where the agent says so)."""

from __future__ import annotations

import asyncio
import weakref

from a2a_tasks.operations.call import Call
from a2a_tasks.protocol.idempotency import fingerprint, name_of_key, name_of_message
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.store.idempotency import Key

__all__ = ["key_of", "turnstile"]

_turnstiles: weakref.WeakValueDictionary[tuple[int, Key], asyncio.Lock] = (
    weakref.WeakValueDictionary()
)


def key_of(request: SendMessageRequest, call: Call) -> Key | None:
    """By what the request is known again; None if it brings nothing. Raises InvalidParams for a bad header.

    It is the caller's own, also where the callers of a tenant share their tasks.
    A header goes before the message's id. Where clients name their tasks, messages have no ids of their own.
    """
    if call.idempotency_key is not None:
        name = name_of_key(call.idempotency_key)
    elif call.agent.idempotent_message_ids and not request.named:
        name = name_of_message(request)
    else:
        return None
    return Key(
        call.caller.own(call.agent.slug, request.tenant),
        name,
        fingerprint(request, call.extensions),
    )


def turnstile(key: Key) -> asyncio.Lock:
    """One request of a key at a time is looked up and accepted in this process: the others find it.

    It saves work. Between processes the unique name decides.
    """
    place = (id(asyncio.get_running_loop()), key)
    found = _turnstiles.get(place)
    if found is None:
        found = _turnstiles[place] = asyncio.Lock()
    return found
