"""The repetition of an ended task by an operator: a new task with the same owner, context and message."""

from __future__ import annotations

import base64
import contextlib
import logging
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass

import msgspec

from a2a_console.rerun.beginnings import Beginning, find_beginning, note_repetition
from a2a_tasks.agents import Agent, registry
from a2a_tasks.audit import actor
from a2a_tasks.conf import conf
from a2a_tasks.execution.turns import read_run_request
from a2a_tasks.operations.accept_message import check_size
from a2a_tasks.operations.agent_versions import MessageRoute, find_route
from a2a_tasks.operations.backpressure import limit_waiting, queue_limit
from a2a_tasks.protocol.errors import InvalidParams, TaskNotFound
from a2a_tasks.protocol.files import file_of
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.media_types import media_type_of
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.protocol.titles import title_of
from a2a_tasks.protocol.values import UNSET, Message, Part, replace
from a2a_tasks.store import event_log, files
from a2a_tasks.store.accept import accept
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.files import FileGone, store_large_files
from a2a_tasks.store.hooks import Companion
from a2a_tasks.store.idempotency import IdempotencyKey, KeyTaken, recall, remember
from a2a_tasks.store.records import NewTask

__all__ = ["MAX_NONCE_LENGTH", "QUOTA_KEY", "Again", "CannotRunAgain", "run_again"]

logger = logging.getLogger(__name__)
#: The quota key of such runs. It is not the owner's, whose own requests must not wait for them.
QUOTA_KEY = "operators"
MAX_NONCE_LENGTH = 64


class CannotRunAgain(Exception):
    """The task cannot be run again. The text has the reason, for the operator."""


@dataclass(frozen=True, slots=True)
class Again:
    """The primary key and the public id of the new task. `before`: an earlier request with the nonce created it."""

    task: int
    id: str
    before: bool = False


async def run_again(task: int, *, nonce: str = "") -> Again:
    """Start the ended task with this primary key again, on behalf of the acting principal (audit/actor.py).

    The new task has the same owner, creator, tenant, agent, context, dialect and request data. Its message has a new id
    and refers to the old task. Webhooks stay with the old task.

    Requests with the same `nonce`, of at most MAX_NONCE_LENGTH characters, create one task. Raises TaskNotFound;
    CannotRunAgain with the reason; Overloaded if too many runs wait for the agent, or the database or a storage is
    away.
    """
    with limit_waiting():
        old = await _find(task)
        agent = _able(old)
        key = _key(old, nonce)
        existing = await _find_existing(old, key)
        if existing is not None:
            return existing
        route = await find_route(agent, old.scope, context_id=old.context_id)
        await queue_limit.admit(route.queue)
        try:
            new = await _begin(old, route, key)
        except KeyTaken:  # another request with the same nonce was faster
            existing = await _find_existing(old, key)
            if existing is None:
                raise CannotRunAgain(
                    "It was run again at this moment, and is gone already"
                ) from None
            return existing
    logger.info("task %s was run again as %s by operator %s", old.id, new.id, actor())
    return new


async def _find(task: int) -> Beginning:
    old = await run_in_thread(find_beginning, task)
    if old is None:
        raise TaskNotFound(taskId=str(task))
    return old


def _able(old: Beginning) -> Agent:
    """Return the agent that will run the new task. Raises CannotRunAgain."""
    if old.state not in TERMINAL:
        raise CannotRunAgain(
            f"The task is {old.state.word}: cancel it first, so that its work is not done twice at once"
        )
    agent = registry.find(old.scope.agent)
    if agent is None:
        hosted = registry.find_hosted(old.scope.agent)
        what = "switched off" if hosted else "not on this host any more"
        raise CannotRunAgain(f"The agent {old.scope.agent} is {what}")
    for part in old.message.parts:
        if not agent.accepts(media_type_of(part)):
            raise CannotRunAgain(f"The agent does not take {media_type_of(part)[:100]} any more")
    return agent


def _key(old: Beginning, nonce: str) -> IdempotencyKey | None:
    if len(nonce) > MAX_NONCE_LENGTH:
        raise ValueError("The nonce is too long")
    return IdempotencyKey(old.scope, f"again/{old.task}/{nonce}", str(old.task)) if nonce else None


async def _find_existing(old: Beginning, key: IdempotencyKey | None) -> Again | None:
    if key is None:
        return None
    found = await run_in_thread(recall, key, old.scope)
    return None if found is None else Again(found.accepted.task, found.accepted.view.id, True)


async def _begin(old: Beginning, route: MessageRoute, key: IdempotencyKey | None) -> Again:
    # The old task, then its own references, as many as a message may have.
    named = tuple(dict.fromkeys([old.id, *old.message.reference_task_ids]))
    message = replace(
        old.message,
        message_id=str(uuid.uuid4()),
        task_id=str(uuid.uuid4()),
        context_id=old.context_id,
        reference_task_ids=named[: int(conf.MAX_REFERENCES)],
    )
    async with _with_files(old, message) as (kept, take):
        new = _new(old, kept, key, route, *take)
        accepted = await run_in_thread(accept, new)
    return Again(accepted.task, new.id)


@contextlib.asynccontextmanager
async def _with_files(
    old: Beginning, message: Message
) -> AsyncIterator[tuple[Message, tuple[Companion, ...]]]:
    """Yield the message with copies of its files for the new task: the old files are deleted with the old task."""
    if not any(map(file_of, message.parts)):
        yield message, ()
        return
    parts = [await _load_file(part, old) for part in message.parts]
    request = SendMessageRequest(message=replace(message, parts=tuple(parts)))
    async with store_large_files(request, old.scope) as (stored, files_taken):
        yield stored.message, files_taken


async def _load_file(part: Part, old: Beginning) -> Part:
    """Return the part with the bytes of its file. Raises CannotRunAgain."""
    name = file_of(part)
    if name is None:
        return part
    try:
        row = await run_in_thread(files.find, name, old.scope.agent, old.scope)
        if row is None or row.task != old.task:
            raise FileGone(name)
        content = await files.read(row)
    except FileGone:
        raise CannotRunAgain("A file of its first message is not there any more") from None
    return replace(part, url=UNSET, raw=base64.b64encode(content).decode())


def _leave_tree(request: str) -> str:
    """Return the data of a request without the agents that called for it, which do not wait for the new task."""
    if not request:
        return request
    return write(msgspec.structs.replace(read_run_request(request), root=0, path=())).decode()


def _new(
    old: Beginning,
    message: Message,
    key: IdempotencyKey | None,
    route: MessageRoute,
    *beside: Companion,
) -> NewTask:
    stored = write(message)
    try:
        check_size(stored)
    except InvalidParams:
        raise CannotRunAgain("Its first message is larger than the host takes now") from None
    assert message.task_id  # noqa: S101 - `_begin` sets the id
    noting = note_repetition(old, message.task_id, actor())
    beside = (noting, *beside, *route.companions)
    return NewTask(
        scope=old.scope,
        principal=old.principal,
        id=message.task_id,
        context_id=old.context_id,
        message=stored.decode(),
        role=message.role.value,
        at=event_log.now(),
        dialect=old.dialect,
        opening=title_of(message.parts),
        queue=route.queue,
        quota_key=QUOTA_KEY,
        ordered=route.agent.one_at_a_time == "context",
        request=_leave_tree(old.request),
        sender=actor(),
        companions=(*beside, remember(key)) if key else beside,
        lock=key.name if key else "",
    )
