"""`python sdk_03.py CARD_URL VERSION ENDPOINT [AT]` where a2a-sdk 0.3.x is installed: what the published client can do here.

The card must name ENDPOINT for its dialect. AT: talk to that URL instead. The variable CHECKS says what is asked, over each of
BINDINGS; with DEFAULTS the client has the timeouts it is made with. Prints one line of JSON a check. The
same checks as `conversation.mjs`. The SDK is imported by name because checkers of types see the 1.x of the tests
themselves.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import traceback
import uuid
from base64 import b64decode
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import grpc
import httpx

sdk: Any = import_module("a2a.client")
failures: Any = import_module("a2a.client.errors")
types: Any = import_module("a2a.types")

PATIENCE = 30.0
BEGUN = ("submitted", "working")
NOT_FOUND, NOT_CANCELABLE, BAD_PARAMS = -32001, -32002, -32602
#: What HTTP+JSON says for the codes; the client shows no more of an error than its status.
STATUS = {NOT_FOUND: 404, NOT_CANCELABLE: 409, BAD_PARAMS: 400}
#: What gRPC says: the client lets its errors through as they are.
NAMES = {
    NOT_FOUND: "TaskNotFoundError: ",
    NOT_CANCELABLE: "TaskNotCancelableError: ",
    BAD_PARAMS: "InvalidParamsError: ",
}


def word() -> str:
    """A word nobody has said before."""
    return uuid.uuid4().hex[:12]


def same(found: object, wanted: object, what: str) -> None:
    """Raises AssertionError."""
    assert found == wanted, f"{what}: {found!r} instead of {wanted!r}"


def texts(parts: Any) -> str:
    """All texts of parts."""
    return "".join(part.root.text for part in parts or [] if part.root.kind == "text")


def said(task: Any) -> str:
    """The text of the status message."""
    return texts(task.status.message.parts) if task.status.message else ""


def artifacts(task: Any) -> list[str]:
    """The text of each artifact."""
    return [texts(artifact.parts) for artifact in task.artifacts or []]


def history(task: Any) -> list[str]:
    """The text of each message."""
    return [texts(message.parts) for message in task.history or []]


@dataclass(frozen=True)
class Place:
    """Where to talk, and what the card has to say about it."""

    card_url: str
    version: str
    endpoint: str
    at: str = ""


@dataclass(frozen=True)
class Peer:
    """One interface of the agent."""

    place: Place
    card: Any
    binding: str
    plain: Any
    streaming: Any

    async def answer(
        self, text: str, *, task: Any = None, context: Any = None, blocking: bool = True
    ) -> Any:
        """The one answer of a send that does not stream: a Task or a Message."""
        configuration = types.MessageSendConfiguration(blocking=blocking, accepted_output_modes=[])
        message = self.message(text, task, context)
        asked = self.plain.send_message(message, configuration=configuration)
        (answer,) = [event async for event in asked]
        return answer[0] if isinstance(answer, tuple) else answer

    @staticmethod
    def message(text: str, task: Any = None, context: Any = None) -> Any:
        """A message of one text part."""
        return types.Message(
            role=types.Role.user,
            message_id=word(),
            parts=[types.Part(root=types.TextPart(text=text))],
            task_id=task,
            context_id=context,
        )

    def stream(self, text: str, **more: Any) -> AsyncIterator[Any]:
        """The events of a send: pairs of the task as it is and the update, or one Message."""
        events: AsyncIterator[Any] = self.streaming.send_message(self.message(text, **more))
        return events

    def resubscribe(self, task: str) -> AsyncIterator[Any]:
        """The events of a running task."""
        events: AsyncIterator[Any] = self.streaming.resubscribe(types.TaskIdParams(id=task))
        return events

    async def get(self, task: str, **more: Any) -> Any:
        """The task as it stands."""
        return await self.plain.get_task(types.TaskQueryParams(id=task, **more))

    async def cancel(self, task: str) -> Any:
        """Cancel the task."""
        return await self.plain.cancel_task(types.TaskIdParams(id=task))

    async def until(self, task: str, state: str) -> Any:
        """Poll until the task is in that state."""
        while (found := await self.get(task)).status.state != state:
            assert found.status.state in BEGUN, f"{found.status.state} on the way to {state}"
            await asyncio.sleep(0.02)
        return found

    async def fails(self, action: Awaitable[Any], code: int) -> None:
        """An error of that code, as far as the client shows it."""
        try:
            found = await action
        except failures.A2AClientJSONRPCError as error:
            same(error.error.code, code, "code")
        except failures.A2AClientHTTPError as error:
            same(error.status_code, STATUS[code], "status")
        except grpc.aio.AioRpcError as error:
            named = str(error.details()).startswith(NAMES[code])
            assert named, f"{error.details()!r} instead of {NAMES[code]!r}"
        else:
            raise AssertionError(f"no error, but {found!r}")


async def everything(events: AsyncIterator[Any]) -> list[Any]:
    """A stream, to its end."""
    return [event async for event in events]


def last_state(events: list[Any]) -> str:
    """The state of the task after the last event."""
    return str(events[-1][0].status.state.value)


def url_of(card: Any, binding: str) -> str | None:
    """Where the client talks: the last word of the card on a binding counts."""
    urls = {card.preferred_transport or "JSONRPC": card.url}
    urls |= {other.transport: other.url for other in card.additional_interfaces or []}
    return urls.get(binding)


CHECKS: list[Callable[[Peer], Coroutine[Any, Any, None]]] = []
check = CHECKS.append


@check
async def card_names_the_dialect(peer: Peer) -> None:
    same(peer.card.protocol_version.rpartition(".")[0], peer.place.version, "version")
    same(url_of(peer.card, peer.binding), peer.place.endpoint, "URL")


@check
async def blocking_send(peer: Peer) -> None:
    text = word()
    task = await peer.answer(f"echo {text}")
    same((task.kind, task.status.state), ("task", "completed"), "answer")
    same(artifacts(task), [text], "artifacts")
    same(await peer.get(task.id), task, "the task got afterwards")


@check
async def send_at_once_and_poll(peer: Peer) -> None:
    task = await peer.answer("slow 2", blocking=False)
    assert task.status.state in BEGUN, task.status.state
    same(artifacts(await peer.until(task.id, "completed")), ["Slept 2 s"], "artifacts")


@check
async def stream_of_chunks(peer: Peer) -> None:
    shown: list[Any] = []
    whole, last = "", None
    async for task, update in peer.stream("chunks 20"):
        last = update
        if update is None:
            shown.append(task.id)
        elif update.kind == "artifact-update":
            shown.append((bool(update.append), bool(update.last_chunk)))
            whole += texts(update.artifact.parts)  # now: the client adds later chunks to it
    same(shown[1:], [(False, False)] + [(True, False)] * 18 + [(True, True)], "chunks")
    assert last is not None
    same((last.kind, last.final), ("status-update", True), "last event")
    same(last.status.state, "completed", "last state")
    same(artifacts(await peer.get(shown[0])), [whole], "the stored artifact")


@check
async def silent_send(peer: Peer) -> None:
    same(artifacts(await peer.answer("sleep 8")), ["Slept 8 s"], "artifacts")


@check
async def silent_stream(peer: Peer) -> None:
    same(last_state(await everything(peer.stream("sleep 8"))), "completed", "end of the stream")


@check
async def history_length(peer: Peer) -> None:
    asked = await peer.answer("ask Who?")
    await peer.answer("Ada", task=asked.id)
    found = history(await peer.get(asked.id))
    same((found[0], found[-1]), ("ask Who?", "Ada"), "ends of the history")
    same(history(await peer.get(asked.id, history_length=1)), ["Ada"], "the newest message")


@check
async def input_required_and_reply(peer: Peer) -> None:
    asked = await peer.answer("ask Who?")
    same((asked.status.state, said(asked)), ("input-required", "Who?"), "question")
    text = word()
    done = await peer.answer(text, task=asked.id, context=asked.context_id)
    same((done.id, done.context_id), (asked.id, asked.context_id), "ids after the reply")
    same((done.status.state, artifacts(done)), ("completed", [text]), "answer")


@check
async def relayed_question(peer: Peer) -> None:
    asked = await peer.answer("call ask Who?")
    same((asked.status.state, said(asked)), ("input-required", "Who?"), "question")
    text = word()
    done = await peer.answer(text, task=asked.id, context=asked.context_id)
    same((done.id, done.status.state, artifacts(done)), (asked.id, "completed", [text]), "answer")


@check
async def streamed_question_and_reply(peer: Peer) -> None:
    events = await everything(peer.stream("ask Who?"))
    same(last_state(events), "input-required", "end of the first stream")
    assert events[-1][1].final, "the last event of the first stream is not final"
    more = await everything(peer.stream("Ada", task=events[0][0].id))
    same((more[0][0].id, more[0][1]), (events[0][0].id, None), "first event of the second stream")
    same(last_state(more), "completed", "end of the second stream")


@check
async def cancel_running(peer: Peer) -> None:
    task = await peer.answer("slow 60", blocking=False)
    same((await peer.cancel(task.id)).status.state, "canceled", "state")
    same((await peer.get(task.id)).status.state, "canceled", "state got afterwards")


@check
async def resubscribe_running(peer: Peer) -> None:
    task = await peer.answer("slow 60", blocking=False)
    events: list[Any] = []
    async for event in peer.resubscribe(task.id):
        if not events:
            same((event[0].id, event[1]), (task.id, None), "first event")
            assert event[0].status.state in BEGUN, event[0].status.state
            await peer.cancel(task.id)
        events.append(event)
    same(last_state(events), "canceled", "end")


@check
async def dropped_stream_taken_up(peer: Peer) -> None:
    stream: Any = peer.stream("slow 60")
    task, _ = await anext(stream)
    await stream.aclose()
    again: Any = peer.resubscribe(task.id)
    found, _ = await anext(again)
    await again.aclose()
    assert found.status.state in BEGUN, found.status.state
    same((await peer.cancel(task.id)).status.state, "canceled", "state")


@check
async def direct_message(peer: Peer) -> None:
    answer = await peer.answer("message hello")
    same((answer.kind, texts(answer.parts)), ("message", "hello"), "answer")
    (event,) = await everything(peer.stream("message hello"))
    same((event.kind, texts(event.parts)), ("message", "hello"), "stream")


@check
async def failed_task(peer: Peer) -> None:
    task = await peer.answer("fail boom")
    same((task.status.state, said(task)), ("failed", "boom"), "answer")
    same(last_state(await everything(peer.stream("fail boom"))), "failed", "end of the stream")


@check
async def rejected_task(peer: Peer) -> None:
    task = await peer.answer("reject boom")
    same((task.status.state, said(task)), ("rejected", "boom"), "answer")


@check
async def files_and_data(peer: Peer) -> None:
    task = await peer.answer("file some bytes")
    file, link = [part.root.file for artifact in task.artifacts for part in artifact.parts]
    same((b64decode(file.bytes), file.name), (b"some bytes", "demo.txt"), "file")
    same((link.uri, link.mime_type), ("https://example.com/demo.txt", "text/plain"), "link")
    (artifact,) = (await peer.answer("data word")).artifacts
    same(artifact.parts[0].root.data, {"said": "word", "length": 4}, "data")


@check
async def unknown_task(peer: Peer) -> None:
    missing = f"no-{word()}"
    await peer.fails(peer.get(missing), NOT_FOUND)
    await peer.fails(peer.cancel(missing), NOT_FOUND)
    await peer.fails(peer.answer("echo x", task=missing), NOT_FOUND)


@check
async def resubscribe_to_unknown_task(peer: Peer) -> None:
    events = peer.resubscribe(f"no-{word()}")
    # Over HTTP the client only says that it is no stream.
    with suppress(failures.A2AClientError, grpc.aio.AioRpcError):
        raise AssertionError(f"subscribed: {await everything(events)}")


@check
async def cancel_of_ended_task(peer: Peer) -> None:
    task = await peer.answer("echo x")
    await peer.fails(peer.cancel(task.id), NOT_CANCELABLE)


@check
async def message_to_ended_task(peer: Peer) -> None:
    task = await peer.answer("echo x")
    await peer.fails(peer.answer("echo y", task=task.id), BAD_PARAMS)
    same(artifacts(await peer.get(task.id)), ["x"], "the ended task")


@check
async def extended_card(peer: Peer) -> None:
    same((await peer.plain.get_card()).name, "Demo", "the card, where there is no other")


def moved(card: Any, at: str) -> Any:
    """The card with that URL for every transport."""
    others = [
        types.AgentInterface(transport=one.transport, url=at)
        for one in card.additional_interfaces or []
    ]
    return card.model_copy(update={"url": at, "additional_interfaces": others})


def channel(url: str) -> grpc.aio.Channel:
    """A channel to the URL in a card: grpcio takes an address without a scheme."""
    scheme, _, address = url.partition("://")
    if scheme == "https":
        return grpc.aio.secure_channel(address, grpc.ssl_channel_credentials())
    return grpc.aio.insecure_channel(address)


async def connect(http: httpx.AsyncClient, place: Place, binding: str) -> Peer:
    """The client as the card tells it to talk, over one binding."""
    base, _, path = place.card_url.partition("/.well-known/")
    resolver = sdk.A2ACardResolver(http, base, f"/.well-known/{path}")
    card = await resolver.get_agent_card()
    clients = [
        sdk.ClientFactory(
            sdk.ClientConfig(
                streaming=streaming,
                httpx_client=http,
                supported_transports=[binding],
                grpc_channel_factory=channel,
            )
        ).create(moved(card, place.at) if place.at else card)
        for streaming in (False, True)
    ]
    return Peer(place, card, binding, *clients)


async def outcome(action: Coroutine[Any, Any, Any]) -> str:
    """Nothing, or what went wrong."""
    try:
        await asyncio.wait_for(action, PATIENCE)
    except Exception:  # noqa: BLE001 - whatever happens is told
        return traceback.format_exc()
    return ""


async def tell(place: Place, binding: str, one: Callable[[Peer], Any]) -> None:
    """Print how a check went."""
    patient: dict[str, Any] = {} if os.environ.get("DEFAULTS") else {"timeout": PATIENCE}

    async def meet() -> None:
        async with httpx.AsyncClient(**patient) as http:
            await one(await connect(http, place, binding))

    told = {"binding": binding, "check": one.__name__, "why": await outcome(meet())}
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


async def converse(place: Place) -> None:
    """Every check that is asked for, over each binding: one after the other, those of silence together."""
    asked, bindings = (os.environ[name].split(",") for name in ("CHECKS", "BINDINGS"))
    found = [(b, one) for b in bindings for one in CHECKS if one.__name__ in asked]
    for binding, one in found:
        if not one.__name__.startswith("silent_"):
            await tell(place, binding, one)
    silent = [case for case in found if case[1].__name__.startswith("silent_")]
    await asyncio.gather(*(tell(place, *case) for case in silent))


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    asyncio.run(converse(Place(*sys.argv[1:])))
