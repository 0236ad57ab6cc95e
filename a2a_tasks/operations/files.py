"""Files of messages and answers: large ones are moved to the storage, and answers contain links to them."""

from __future__ import annotations

import contextlib
import dataclasses
import uuid
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from a2a_tasks.caller import OwnerScope
from a2a_tasks.operations.call_context import CallContext
from a2a_tasks.protocol.files import in_answer
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.protocol.values import Part
from a2a_tasks.store import files
from a2a_tasks.store.file_links import make_linker
from a2a_tasks.store.hooks import Companion
from a2a_tasks.streaming.stream import EventStream

__all__ = ["store_large_files", "add_links"]


@contextlib.asynccontextmanager
async def store_large_files(
    request: SendMessageRequest, scope: OwnerScope
) -> AsyncIterator[tuple[SendMessageRequest, tuple[Companion, ...]]]:
    """Yield the request with its large files in the storage, and the companion that attaches them to its task.

    If the block raises, the files are removed, unless a task has them already. Raises Overloaded.
    """
    if not any(map(files.is_large, request.message.parts)):
        yield request, ()
        return
    kept: list[uuid.UUID] = []

    async def strip(part: Part) -> Part:
        if not files.is_large(part):
            return part
        slimmed, file = await files.keep(part, scope)
        kept.append(file)
        return slimmed

    try:
        parts = [await strip(part) for part in request.message.parts]
        message = msgspec.structs.replace(request.message, parts=tuple(parts))
        yield dataclasses.replace(request, message=message), (files.attach_files(kept),)
    except BaseException:
        await files.discard(kept)
        raise


def add_links(answer: Any, call: CallContext) -> Any:
    """Replace the store's references to files in an answer by download URLs."""
    link = make_linker(call.agent.slug, call.base_url, call.caller.principal)
    if isinstance(answer, EventStream):
        answer.link = link
        return answer
    return in_answer(answer, link)
