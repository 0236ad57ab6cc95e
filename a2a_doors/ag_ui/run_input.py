"""The input of a run (AG-UI 1.0, RunAgentInput), and the message of A2A that it is."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from typing import Any

import msgspec

from a2a_doors.visit import Visit, read_task_id
from a2a_tasks.protocol.errors import IdempotencyConflict, InvalidParams, TaskNotFound
from a2a_tasks.protocol.fields import canonical_base64
from a2a_tasks.protocol.lifecycle import INTERRUPTED
from a2a_tasks.protocol.media_types import MAX_LENGTH
from a2a_tasks.protocol.requests import ListTasksRequest, SendMessageRequest
from a2a_tasks.protocol.values import Message, Part, Role, Task
from a2a_tasks.streaming.stream import EventStream

__all__ = ["Resume", "RunInput", "open_run", "read_input"]

MEDIA = {"image", "audio", "video", "document"}
#: Messages of a task that are looked at for the last one of the user.
LOOKED_AT = 3
MAX_DIGITS = 10
_message = msgspec.json.Decoder(Message).decode


class ThreadMessage(msgspec.Struct, frozen=True):
    """One message of the thread; other members are ignored."""

    id: str
    role: str
    content: Any = None


class Resume(msgspec.Struct, frozen=True, rename="camel"):
    """The answer to an interrupt, whose id is `TASK:EVENT`."""

    interrupt_id: str
    status: str
    payload: Any = None

    @property
    def task_id(self) -> str:
        """The task that has asked. Raises TaskNotFound for an id that the host never gave."""
        return read_task_id(self.interrupt_id.rpartition(":")[0])

    @property
    def question(self) -> int:
        """The number of the event with the question. Raises TaskNotFound for an id that the host never gave."""
        number = self.interrupt_id.rpartition(":")[2]
        if not (number.isdecimal() and number.isascii() and len(number) < MAX_DIGITS):
            raise TaskNotFound
        return int(number)


class RunInput(msgspec.Struct, frozen=True, rename="camel"):
    """A run; `tools`, `state` and `context` are ignored."""

    thread_id: str
    run_id: str
    messages: list[ThreadMessage]
    resume: list[Resume] | None = None


def read_input(document: Any) -> RunInput:
    """Return the input in a JSON document. Raises InvalidParams."""
    try:
        run = msgspec.convert(document, RunInput)
    except msgspec.ValidationError as fault:
        raise InvalidParams(str(fault)) from None
    if run.resume and run.resume[1:]:
        raise InvalidParams.field(
            "resume", "must have one entry: a task asks one question at a time"
        )
    return run


async def open_run(visit: Visit, run: RunInput, **changes: Any) -> EventStream:
    """Send what is new in a run, and return the stream of its turn. A run that is sent again joins the first.

    Raises the errors of the operation.
    """
    whose = [visit.caller.tenant, visit.caller.principal, visit.agent.slug, run.thread_id]
    # Never the thread's own id, which may be that of somebody else's.
    context = str(uuid.uuid5(uuid.NAMESPACE_URL, msgspec.json.encode(whose).decode()))
    changes["idempotency_key"] = str(uuid.uuid5(uuid.UUID(context), run.run_id))
    if run.resume:
        changes["question"] = run.resume[0].question
    messages = list(_list_messages(run, context, await _find_newest(visit, context)))
    while True:
        request = SendMessageRequest(message=messages.pop(0))
        try:
            return await visit.converse(request, streams=True, **changes)
        except IdempotencyConflict:  # the run was sent before, when its thread was not as far
            if not messages:
                raise


async def _find_newest(visit: Visit, context: str) -> Task | None:
    request = ListTasksRequest(context_id=context, page_size=1, history_length=LOOKED_AT)
    page = await visit.run("ListTasks", request)
    return page.tasks[0] if page.tasks else None


def _list_messages(run: RunInput, context: str, newest: Task | None) -> Iterator[Message]:
    """Yield the message of a run, and then the forms that it had if its thread was not as far. Raises InvalidParams."""
    if run.resume:
        entry = run.resume[0]
        if not entry.task_id:
            raise TaskNotFound
        if (payload := entry.payload) is None:
            raise InvalidParams.field("resume[0].payload", "must be the answer")
        part = Part(text=payload) if isinstance(payload, str) else Part(data=payload)
        yield _make(entry.interrupt_id, (part,), context, entry.task_id)
        return
    said = [one for one in run.messages if one.role in {"user", "assistant"}]
    if not said or said[-1].role != "user":
        raise InvalidParams.field("messages", "must end with a message of the user")
    new = _list_new(said, newest)
    parts = tuple(part for one in new for part in _read_parts(one))
    if not parts:
        raise InvalidParams.field(f"messages[{said[-1].id}].content", "must not be empty")
    before = [
        f"{one.role}: {one.content}" for one in said[: -len(new)] if isinstance(one.content, str)
    ]
    text = "\n\n".join(["Conversation so far:", *before])
    whole = (Part(text=text), *parts) if before else parts
    waiting = newest.id if newest and newest.status.state in INTERRUPTED else None
    if waiting:
        yield _make(said[-1].id, parts, context, waiting)
    if newest:
        yield _make(said[-1].id, parts, context)
    yield _make(said[-1].id, whole, context)


def _list_new(said: list[ThreadMessage], newest: Task | None) -> list[ThreadMessage]:
    """Return the messages after the last one that the agent has heard, or after its last answer."""
    texts = newest.history if newest and isinstance(newest.history, list) else []
    heard = {message.message_id for message in map(_message, texts)}
    found: list[ThreadMessage] = []
    for one in reversed(said):
        if one.role != "user" or (found and one.id in heard):
            break
        found.append(one)
    return found[::-1]


def _make(id_: str, parts: tuple[Part, ...], context: str, task: str | None = None) -> Message:
    return Message(message_id=id_, role=Role.USER, parts=parts, context_id=context, task_id=task)


def _read_parts(said: ThreadMessage) -> Iterator[Part]:
    """Yield the parts of a message. Raises InvalidParams."""
    if isinstance(said.content, str):
        yield Part(text=said.content)
        return
    items = said.content or ()
    for index, item in enumerate(items if isinstance(items, list) else [items]):
        if (part := _read_item(item)) is None:
            path = f"messages[{said.id}].content[{index}]"
            raise InvalidParams.field(path, "cannot be read here")
        yield part


def _read_item(item: Any) -> Part | None:
    """Return an item of a content as a part; None = it cannot be read here."""
    match item:
        case {"type": "text", "text": str(text)}:
            return Part(text=text)
        case {"type": str(kind), "source": {"type": str(how), "value": str(value), **about}} if (
            kind in MEDIA
            and isinstance(media_type := about.get("mimeType"), str | None)
            and len(media_type or "") <= MAX_LENGTH
        ):
            with contextlib.suppress(ValueError):
                if how == "data":
                    return Part(raw=canonical_base64(value), media_type=media_type)
                if how == "url":
                    return Part(url=value, media_type=media_type)
    return None
