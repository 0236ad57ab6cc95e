"""The conversation that a request continues, of a client that sends the whole history each time.

The agent has a memory of its own, so it is sent the last message alone. A history is known by its digest. One that is
not known, because it was edited or answered anew, begins another conversation.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Sequence
from typing import Any

import msgspec

from a2a_doors.openai.request import Chat
from a2a_doors.texts import read_object
from a2a_doors.visit import Visit
from a2a_tasks.conf import conf
from a2a_tasks.operations.chats import FoundChat, PlaceTaken, find_chats, move_chat
from a2a_tasks.protocol.chats import ChatPlace, ChatState, HistoryDigest, digest
from a2a_tasks.protocol.errors import A2AError, InvalidParams, TaskEnded, TaskNotFound
from a2a_tasks.protocol.forms import find_form
from a2a_tasks.protocol.lifecycle import INTERRUPTED, TERMINAL
from a2a_tasks.protocol.requests import (
    GetTaskRequest,
    ListTasksRequest,
    SendMessageRequest,
    SubscribeToTaskRequest,
)
from a2a_tasks.protocol.sse import EventId
from a2a_tasks.protocol.values import Message, Part, Role, TaskState
from a2a_tasks.streaming.stream import EventStream

__all__ = ["Continuation", "UnfitReply"]

#: States after whose answer a client repeats its request by itself.
FAILURES = TERMINAL - {TaskState.COMPLETED}
_message = msgspec.json.Decoder(Message).decode


class UnfitReply(Exception):
    """The message does not fit the form of the question; the question stands."""

    def __init__(
        self, task: FoundChat, question: Message, faults: Sequence[tuple[str, str]]
    ) -> None:
        self.task, self.question = task, question
        self.faults = [
            f"{path.removeprefix('message.parts')} {why}".strip(" .") for path, why in faults
        ]


class Continuation:
    """One request in its conversation."""

    def __init__(self, visit: Visit, chat: Chat) -> None:
        self._visit, self._chat = visit, chat
        header = visit.context.request.header
        #: The context that the client names itself; empty = it does not.
        self._named = header("a2a-context-id")
        names = f"A2A-Context-Id,{conf.OPENAI_CONTEXT_HEADERS}".lower().split(",")
        given = ((name.strip(), header(name.strip())) for name in names)
        room = next((f"{name}: {value}" for name, value in given if value), "")
        whose = [visit.caller.tenant, visit.caller.principal, visit.agent.slug, room]
        history = [one.entry for one in chat.history]
        # The history may be large, and the answer may take hours: then only its digests are there.
        self._digests = {state: HistoryDigest(whose, history, state) for state in ChatState}
        self._before = digest(whose, history[:-1], ChatState.ANSWERED) if history[1:] else ""
        #: The digest at which the conversation is now.
        self._at = self._digest(ChatState.ASKED)
        #: "0" with the first try of a client that counts; empty with one that does not.
        self._tries = header("x-stainless-retry-count")

    def _digest(self, outcome: ChatState, answer: str | None = None) -> str:
        more = [] if answer is None else [["assistant", answer]]
        return self._digests[outcome].then(*more)

    async def open(self, *, streams: bool) -> EventStream:
        """Send the message, or join the answer to it if it is a repetition; return the stream of its turn.

        Raises UnfitReply, and the errors of the operation.
        """
        call = self._visit.call("SendMessage")
        asked, failed, before = self._at, self._digest(ChatState.FAILED), self._before
        found = await find_chats(call, [name for name in (asked, failed, before) if name])
        repeated = next((one for one in found if one.digest != before and self._repeats(one)), None)
        if repeated:
            return await self._join(repeated, streams=streams)
        known = next((one for one in found if one.digest == before), None)
        for chat in (known, None):
            with contextlib.suppress(PlaceTaken):
                return await self._continue(chat, streams=streams)
        raise AssertionError("a conversation that begins takes no place")

    def _repeats(self, chat: FoundChat) -> bool:
        """Return whether this request is the last one of a conversation once more."""
        if not chat.recent:
            return False
        if self._tries == "0":  # said by its user again, unless it was told to come again
            return chat.digest != self._at and chat.state not in FAILURES
        return bool(self._tries) or chat.digest != self._at

    async def _join(self, chat: FoundChat, *, streams: bool) -> EventStream:
        self._at = chat.digest
        request = SubscribeToTaskRequest(id=chat.task_id, lenient=True)
        call = self._visit.call("GetTask", last_event_id=EventId(chat.number))
        stream: EventStream = await self._visit.context.table["SubscribeToTask"](request, call)
        if streams:
            self._visit.context.observed.streams(stream)
        return stream

    async def _continue(self, chat: FoundChat | None, *, streams: bool) -> EventStream:
        """Send the message to the task that waits for it, or to the context of the conversation, or to a new one."""
        place = ChatPlace(asked=self._at)
        if chat is not None:
            place = ChatPlace(asked=self._at, row=chat.row, before=chat.digest)
        elif self._named:
            chat = await self._find_named()
        if chat is not None and chat.state in INTERRUPTED:
            with contextlib.suppress(TaskEnded, TaskNotFound):  # by another client, at this moment
                return await self._reply(chat, place, streams=streams)
        parts = self._chat.read_parts()
        if chat is None and (transcript := self._chat.transcript()):
            parts = (Part(text=transcript), *parts)
        context = chat.context_id if chat else self._named or None
        return await self._send(parts, place, streams=streams, context_id=context)

    async def _find_named(self) -> FoundChat | None:
        """Return the conversation of the context that the client names, with its newest task; None = it is a new one."""
        request = ListTasksRequest(context_id=self._named, page_size=1, history_length=0)
        page = await self._visit.run("ListTasks", request)
        if not page.tasks:
            return None
        (task,) = page.tasks
        return FoundChat(0, "", task.id, task.context_id, task.status.state, 0, False)

    async def _reply(self, chat: FoundChat, place: ChatPlace, *, streams: bool) -> EventStream:
        """Answer the question of a task. Raises UnfitReply."""
        task = await self._visit.run("GetTask", GetTaskRequest(id=chat.task_id, history_length=0))
        question = _message(task.status.message) if task.status.message else None
        form = find_form(question) if question else None
        parts = self._chat.read_parts()
        if form is not None and (answer := read_object(self._chat.messages[-1].text)):
            parts = (Part(data=answer),)
        try:
            return await self._send(
                parts, place, streams=streams, task_id=chat.task_id, context_id=chat.context_id
            )
        except InvalidParams as fault:
            if form is None or question is None or not fault.violations:
                raise
            raise UnfitReply(chat, question, fault.violations) from None

    async def _send(
        self, parts: tuple[Part, ...], place: ChatPlace, *, streams: bool, **ids: Any
    ) -> EventStream:
        instructions = self._chat.instructions
        message = Message(
            message_id=str(uuid.uuid4()),
            role=Role.USER,
            parts=parts,
            metadata={"instructions": instructions} if instructions else None,
            **ids,
        )
        request = SendMessageRequest(message=message)
        return await self._visit.converse(request, streams=streams, chat=place)

    async def settle(self, task_id: str, outcome: ChatState, answer: str | None = None) -> None:
        """Note what has become of the message, and the answer that was sent."""
        digest = self._digest(outcome, answer)
        before, self._at = self._at, digest
        if digest == before:
            return
        # Without it, the next message begins another conversation, with the history as a text.
        with contextlib.suppress(A2AError):
            await move_chat(task_id, before, digest)

    async def settle_unfit(self, unfit: UnfitReply, answer: str) -> None:
        """Note the answer to a message that did not fit: the question stands."""
        await move_chat(
            unfit.task.task_id, unfit.task.digest, self._digest(ChatState.ANSWERED, answer)
        )
