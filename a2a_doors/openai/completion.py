"""The answer to a request for a chat completion, whole or as a stream of chunks."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from a2a_doors.hang_ups import serve_until_gone
from a2a_doors.openai.conversation import Continuation, UnfitReply
from a2a_doors.openai.errors import Refusal, of_error, of_turn
from a2a_doors.openai.request import Chat
from a2a_doors.texts import GAP, show_message
from a2a_doors.turn_text import TurnText
from a2a_doors.visit import Visit, begin_stream
from a2a_tasks.bindings.http import Headers, Send, respond
from a2a_tasks.conf import conf
from a2a_tasks.protocol.chats import ChatState
from a2a_tasks.protocol.jsontext import on_one_line, write
from a2a_tasks.streaming.stream import EventStream

__all__ = ["complete", "say"]

DRAINING = Refusal(503, "This process stops and the task goes on: send the same again", "draining")
GOES_ON = Refusal(503, "The agent is still working: send the same again", "still_working")


async def complete(visit: Visit, chat: Chat, send: Send) -> None:
    """Answer a request. Raises the errors of the operation before the answer begins."""
    conversation = Continuation(visit, chat)
    try:
        stream = await conversation.open(streams=bool(chat.stream))
    except UnfitReply as unfit:
        text = GAP.join(["\n".join(unfit.faults), show_message(unfit.question)])
        await conversation.settle_unfit(unfit, text)
        await say(send, chat, text, (unfit.task.task_id, unfit.task.context_id))
        return
    chat.messages.clear()  # they may be large, and the answer may take hours
    completion = _Completion(visit, chat, conversation, stream, send)
    answer = completion.stream() if chat.stream else completion.answer()
    await serve_until_gone(visit, stream, answer, completion.say_drained)
    await completion.leave()


async def say(send: Send, chat: Chat, text: str, ids: tuple[str, str] = ("", "")) -> None:
    """Answer with a text that is there already."""
    shapes = _Shapes(chat, *ids)
    if not chat.stream:
        await respond(send, 200, write(shapes.completion(text, _ZERO)), shapes.headers)
        return
    chunks = [shapes.chunk(role="assistant", content=text), shapes.last()]
    await begin_stream(send, shapes.headers)
    await _send(send, *chunks, *shapes.ends(_ZERO), more=False)


class _Shapes:
    """The JSON of one completion, with all members that clients need."""

    def __init__(self, chat: Chat, task_id: str, context_id: str) -> None:
        self._chat, self._id, self._created = chat, f"chatcmpl-{task_id}", int(time.time())
        ids = [(b"a2a-task-id", task_id), (b"a2a-context-id", context_id)]
        self.headers: Headers = [
            (name, value.encode("latin-1", "replace")) for name, value in ids if value
        ]

    def _make(self, kind: str, choices: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        about = {
            "id": self._id,
            "object": kind,
            "created": self._created,
            "model": self._chat.model,
        }
        return {**about, "choices": choices, **more}

    def completion(self, text: str, usage: dict[str, int]) -> dict[str, Any]:
        """Return the whole completion."""
        message = {"role": "assistant", "content": text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        return self._make("chat.completion", [choice], usage=usage)

    def chunk(self, *, finish_reason: str | None = None, **delta: str) -> bytes:
        """Return a chunk; without a delta it is a sign of life."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        more = {"usage": None} if self._chat.wants_usage else {}
        return write(self._make("chat.completion.chunk", [choice], **more))

    def last(self) -> bytes:
        """Return the chunk that ends the answer."""
        return self.chunk(finish_reason="stop")

    def ends(self, usage: dict[str, int]) -> list[bytes]:
        """Return all behind that chunk."""
        chunk = write(self._make("chat.completion.chunk", [], usage=usage))
        return [*([chunk] if self._chat.wants_usage else []), b"[DONE]"]


class _Completion:
    """The answer to one accepted message."""

    def __init__(
        self, visit: Visit, chat: Chat, conversation: Continuation, stream: EventStream, send: Send
    ) -> None:
        self._visit, self._chat, self._conversation = visit, chat, conversation
        self._send, self._task = send, stream.subject
        self._turn = TurnText(stream)
        self._shapes = _Shapes(chat, stream.subject.id, stream.subject.context_id)
        #: True once the client has all, or was told why not.
        self._settled = False

    async def answer(self) -> None:
        """Send the whole answer, or the failure."""
        try:
            async with asyncio.timeout(float(conf.MAX_BLOCK_SECONDS)):
                async for _ in self._turn.pieces(float(conf.MAX_BLOCK_SECONDS)):
                    pass
        except TimeoutError:
            await self._refuse(GOES_ON)
            return
        except Exception as fault:  # noqa: BLE001 - after any failure the client gets an answer
            await self._refuse(of_error(fault))
            return
        if self._turn.failed:
            await self._refuse(of_turn(self._turn))
            return
        body = write(self._shapes.completion(self._turn.text, await self._read_usage()))
        await self._settle(ChatState.ANSWERED, self._turn.text)
        await respond(self._send, 200, body, self._shapes.headers)

    async def _refuse(self, refusal: Refusal) -> None:
        await self._settle(ChatState.FAILED)
        headers = [*self._shapes.headers, *refusal.headers]
        await respond(self._send, refusal.status, refusal.body, headers)

    async def stream(self) -> None:
        """Send the answer in chunks. Each stream that is not whole ends with an error."""
        await begin_stream(self._send, self._shapes.headers)
        await _send(self._send, self._shapes.chunk(role="assistant", content=""))
        try:
            async for text in self._turn.pieces(float(conf.KEEPALIVE_SECONDS)):
                delta = {"content": text} if text else {}
                await _send(self._send, self._shapes.chunk(**delta))
        except Exception as fault:  # noqa: BLE001 - after any failure the client is informed
            await self._break(of_error(fault))
            return
        if self._turn.failed:
            await self._break(of_turn(self._turn), f"[The agent failed: {self._turn.words}]")
            return
        usage = await self._read_usage() if self._chat.wants_usage else _ZERO
        await self._settle(ChatState.ANSWERED, self._turn.text)
        await _send(self._send, self._shapes.last(), *self._shapes.ends(usage), more=False)

    async def _break(self, refusal: Refusal, words: str = "") -> None:
        """End a stream with an error, after its words: some clients show nothing else."""
        text = GAP + words if words and self._turn.text else words
        shown = [self._shapes.chunk(content=text)] if text and conf.OPENAI_TELL_FAILURES else []
        await self._settle(ChatState.FAILED)
        await _send(self._send, *shown, refusal.body, more=False)

    async def say_drained(self) -> None:
        """Tell a client that the process stops."""
        if self._chat.stream:
            await self._break(DRAINING, "[This process stops. Send the same again.]")
        else:
            await self._refuse(DRAINING)

    async def _settle(self, outcome: ChatState, answer: str | None = None) -> None:
        self._settled = True
        await self._conversation.settle(self._task.id, outcome, answer)

    async def leave(self) -> None:
        """Note how much of a stream was sent to a client that has left: it may send that as the answer."""
        if not self._settled and self._chat.stream and self._turn.text:
            await self._settle(ChatState.ANSWERED, self._turn.text)

    async def _read_usage(self) -> dict[str, int]:
        """Return the usage of the task so far; zero where the agent reports none."""
        models = (await self._visit.read_usage(self._task.id)).values()
        return _count(sum(m.input_tokens for m in models), sum(m.output_tokens for m in models))


def _count(asked: int, answered: int) -> dict[str, int]:
    return {
        "prompt_tokens": asked,
        "completion_tokens": answered,
        "total_tokens": asked + answered,
    }


_ZERO = _count(0, 0)


async def _send(send: Send, *chunks: bytes, more: bool = True) -> None:
    body = b"".join(b"data: %b\n\n" % on_one_line(chunk) for chunk in chunks)
    await send({"type": "http.response.body", "body": body, "more_body": more})
