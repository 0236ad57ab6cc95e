"""Files of messages and answers: large ones are put away before they are stored, and answered with links."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec

from a2a_tasks.caller import Scope
from a2a_tasks.operations.call import Call
from a2a_tasks.protocol.files import in_answer
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.protocol.values import Part
from a2a_tasks.store import files
from a2a_tasks.store.companions import Companion
from a2a_tasks.store.file_links import linking
from a2a_tasks.streaming.stream import EventStream

__all__ = ["put_away", "with_links"]


@contextlib.asynccontextmanager
async def put_away(
    request: SendMessageRequest, scope: Scope
) -> AsyncIterator[tuple[SendMessageRequest, Companion]]:
    """The request with its large files in the storage, and what gives them to the task that is made of it.

    If the block raises, the files are removed, unless a task has them after all. Raises Overloaded.
    """
    kept: list[uuid.UUID] = []

    async def slim(part: Part) -> Part:
        if not files.is_large(part):
            return part
        slimmed, file = await files.keep(part, scope)
        kept.append(file)
        return slimmed

    try:
        parts = [await slim(part) for part in request.message.parts]
        message = msgspec.structs.replace(request.message, parts=tuple(parts))
        yield dataclasses.replace(request, message=message), files.attaching(kept)
    except BaseException:
        await files.discard(kept)
        raise


def with_links(operation: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """The operation, whose answer has URLs of files in place of what the store refers to them by."""

    @functools.wraps(operation)
    async def linked(request: Any, call: Call) -> Any:
        answer = await operation(request, call)
        link = linking(call.agent.slug, call.base_url, call.caller.principal)
        if isinstance(answer, EventStream):
            answer.link = link
            return answer
        return in_answer(answer, link)

    return linked
