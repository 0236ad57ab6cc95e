"""Running an ended task again, for an operator: a new task of the same owner, in the same context, by the same message."""

from __future__ import annotations

import base64
import contextlib
import logging
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass

from a2a_tasks.agents import Agent, registry, switches
from a2a_tasks.audit import actor
from a2a_tasks.conf import conf
from a2a_tasks.operations.bounds import check_size
from a2a_tasks.operations.files import put_away
from a2a_tasks.operations.line import backlog, place_in_line
from a2a_tasks.protocol.errors import InvalidParams, TaskNotFound
from a2a_tasks.protocol.files import file_of
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.media_types import media_type_of
from a2a_tasks.protocol.opening import opening_of
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.protocol.values import UNSET, Message, Part, replace
from a2a_tasks.store import files, log
from a2a_tasks.store.accept import accept
from a2a_tasks.store.beginnings import Beginning, beginning, noting_repetition
from a2a_tasks.store.companions import Companion
from a2a_tasks.store.files import FileGone
from a2a_tasks.store.hop import hop
from a2a_tasks.store.idempotency import Key, KeyTaken, recall, remembering
from a2a_tasks.store.records import NewTask

__all__ = ["LONGEST_NONCE", "SHARE", "Again", "CannotRunAgain", "run_again"]

logger = logging.getLogger(__name__)
#: Out of whose share of the slots such runs come: not out of the owner's, whose own requests must not wait for them.
SHARE = "operators"
LONGEST_NONCE = 64


class CannotRunAgain(Exception):
    """The task cannot be run again as it is. The text says why, and is for the operator."""


@dataclass(frozen=True, slots=True)
class Again:
    """The new task: its primary key and its public id. `before`: the same wish had been granted already."""

    task: int
    id: str
    before: bool = False


async def run_again(task: int, *, nonce: str = "") -> Again:
    """Have the ended task with this primary key begin once more, for whoever acts now (audit/actor.py).

    The new one is a task of its own: of the same owner, maker, tenant, agent, context and dialect, with what was said
    beside the first message. The message has a new id and refers to the old task. Webhooks stay with the old one.

    The same wish, told by a `nonce` of at most LONGEST_NONCE characters, is granted once. Raises TaskNotFound;
    CannotRunAgain, in words; Overloaded if too much is waiting for the agent, or the database or a storage is away.
    """
    with place_in_line():
        old = await _found(task)
        agent = _able(old)
        key = _key(old, nonce)
        known = await _known(old, key)
        if known is not None:
            return known
        await backlog.admit(switches.queue_of(agent))
        try:
            new = await _begin(old, agent, key)
        except KeyTaken:  # by another click, at this moment
            known = await _known(old, key)
            if known is None:
                raise CannotRunAgain(
                    "It was run again at this moment, and is gone already"
                ) from None
            return known
    logger.info("task %s was run again as %s by operator %s", old.id, new.id, actor())
    return new


async def _found(task: int) -> Beginning:
    old = await hop(beginning, task)
    if old is None:
        raise TaskNotFound(taskId=str(task))
    return old


def _able(old: Beginning) -> Agent:
    """The agent that will run it. Raises CannotRunAgain."""
    if old.state not in TERMINAL:
        raise CannotRunAgain(
            f"The task is {old.state.word}: cancel it first, so that its work is not done twice at once"
        )
    agent = registry.find(old.scope.agent)
    if agent is None:
        known = registry.hosted(old.scope.agent)
        what = "switched off" if known else "not on this host any more"
        raise CannotRunAgain(f"The agent {old.scope.agent} is {what}")
    for part in old.message.parts:
        if not agent.accepts(media_type_of(part)):
            raise CannotRunAgain(f"The agent does not take {media_type_of(part)[:100]} any more")
    return agent


def _key(old: Beginning, nonce: str) -> Key | None:
    if len(nonce) > LONGEST_NONCE:
        raise ValueError("The nonce is too long")
    return Key(old.scope, f"again/{old.task}/{nonce}", str(old.task)) if nonce else None


async def _known(old: Beginning, key: Key | None) -> Again | None:
    if key is None:
        return None
    found = await hop(recall, key, old.scope)
    return None if found is None else Again(found.accepted.task, found.accepted.view.id, True)


async def _begin(old: Beginning, agent: Agent, key: Key | None) -> Again:
    message = replace(
        old.message,
        message_id=str(uuid.uuid4()),
        task_id=str(uuid.uuid4()),
        context_id=old.context_id,
        reference_task_ids=_references(old),
    )
    async with _with_files(old, message) as (kept, take):
        new = _new(old, agent, kept, key, *take)
        accepted = await hop(accept, new)
    return Again(accepted.task, new.id)


def _references(old: Beginning) -> tuple[str, ...]:
    """The old task first, then what it referred to itself, as many as a message may have."""
    named = dict.fromkeys([old.id, *old.message.reference_task_ids])
    return tuple(named)[: int(conf.MAX_REFERENCES)]


@contextlib.asynccontextmanager
async def _with_files(
    old: Beginning, message: Message
) -> AsyncIterator[tuple[Message, tuple[Companion, ...]]]:
    """The message with copies of its files, which the new task takes: the old one's go with the old one."""
    if not any(map(file_of, message.parts)):
        yield message, ()
        return
    parts = [await _whole(part, old) for part in message.parts]
    request = SendMessageRequest(message=replace(message, parts=tuple(parts)))
    async with put_away(request, old.scope) as (slim, take):
        yield slim.message, (take,)


async def _whole(part: Part, old: Beginning) -> Part:
    """The part with the bytes of its file in it. Raises CannotRunAgain."""
    name = file_of(part)
    if name is None:
        return part
    try:
        row = await hop(files.find, name, old.scope.agent, old.scope)
        if row is None or row.task != old.task:
            raise FileGone(name)
        content = await files.read(row)
    except FileGone:
        raise CannotRunAgain("A file of its first message is not there any more") from None
    return replace(part, url=UNSET, raw=base64.b64encode(content).decode())


def _new(
    old: Beginning, agent: Agent, message: Message, key: Key | None, *beside: Companion
) -> NewTask:
    stored = write(message)
    try:
        check_size(stored)
    except InvalidParams:
        raise CannotRunAgain("Its first message is larger than the host takes now") from None
    assert message.task_id  # noqa: S101 - it was given one above
    noting = noting_repetition(old, message.task_id, actor())
    return NewTask(
        scope=old.scope,
        principal=old.principal,
        id=message.task_id,
        context_id=old.context_id,
        message=stored.decode(),
        role=message.role.value,
        at=log.now(),
        dialect=old.dialect,
        opening=opening_of(message),
        queue=switches.queue_of(agent),
        share=SHARE,
        request=old.request,
        sender=actor(),
        companions=(noting, *beside, remembering(key)) if key else (noting, *beside),
        lock=key.name if key else "",
    )
