"""A model server on this machine that speaks the protocols of OpenAI and Anthropic, and does what the prompt says: no weights, no internet.

`/v1/chat/completions`, `/v1/responses` and `/v1/messages`, streamed or not. Each line of the last message of the user is one answer;
the first is given to the message, the second to the results of the first one's tools, and so on. A line is commands,
joined by ` + `:

    SAY words          the words, one piece each. $RESULT is the last result of a tool, $USERS the number of messages of
                       users, \\ud83d half a surrogate pair. At the word WAIT it waits until `release` was called, at PAUSE for one `step`.
    CALL tool {json}   a call of a tool
    ID text            the id of the line's calls that follow, as servers give it that repeat ids; nothing = an empty id
    SLOW seconds       waits before each piece of the line
    FAIL status times  answers with this status; with `times`, only so often for this conversation
    CACHED number      so many of the input tokens were in a cache
    WRITTEN number     so many of the input tokens were written to a cache; only `/v1/messages` says so
    CUT                ends the stream after the words, without an end
    GARBAGE            answers with what is no answer
    NEVER              does not answer

Any other prompt is said again. `GET /counts` has the requests and tokens so far, and each exchange with its state:
that is how tests know that no request was made twice. `python -m tests.model_server 8123` serves one by hand.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import uvicorn

from tests.anthropic_answers import MessagesAnswer
from tests.model_answers import ChatCompletion, Response
from tests.support.listeners import close_listener
from tests.support.ports import free_port

__all__ = ["Exchange", "ModelServer", "serving_model"]

SHAPES: dict[str, Any] = {
    "/v1/chat/completions": ChatCompletion,
    "/v1/responses": Response,
    "/v1/messages": MessagesAnswer,
}
COMMANDS = ("SAY", "CALL", "ID", "SLOW", "FAIL", "CACHED", "WRITTEN", "CUT", "GARBAGE", "NEVER")


@dataclass
class Exchange:
    """One request, and what became of it."""

    number: int
    #: The last message of the user, and the number of the line that answers it.
    prompt: str
    line: int
    input_tokens: int
    output_tokens: int = 0
    #: Those of the input tokens that were in a cache.
    cached_tokens: int = 0
    #: Those that were written to one.
    written_tokens: int = 0
    #: `running`, `finished`, `failed` (as it was told to), or `left`: the client went away.
    state: str = "running"


@dataclass
class Plan:
    """What a line tells the server to do."""

    text: list[str] = field(default_factory=list)
    calls: list[tuple[str, str, str]] = field(default_factory=list)
    pause: float = 0.0
    status: int = 0
    identity: str | None = None
    cut: bool = False
    garbage: bool = False
    never: bool = False


class _Cut(Exception):
    """The stream is cut off."""


class ModelServer:
    """The ASGI application, and its counts."""

    def __init__(self) -> None:
        self.url = ""
        self.exchanges: list[Exchange] = []
        #: The ids of calls in each request.
        self.calls_read: list[list[str]] = []
        self._failures: Counter[str] = Counter()
        self._released, self._steps = asyncio.Event(), asyncio.Semaphore(0)
        self._loop: asyncio.AbstractEventLoop | None = None

    # --- for tests --------------------------------------------------------------------------

    def release(self) -> None:
        """Let all answers that wait at WAIT go on, those to come as well. From any thread."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._released.set)

    def step(self) -> None:
        """Let one answer that waits at PAUSE go on. From any thread."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._steps.release)

    def of(self, *states: str) -> list[Exchange]:
        """The exchanges in these states."""
        return [exchange for exchange in self.exchanges if exchange.state in states]

    @property
    def counts(self) -> dict[str, Any]:
        """What `GET /counts` says."""
        return {
            "requests": len(self.exchanges),
            "input_tokens": sum(one.input_tokens for one in self.exchanges),
            "output_tokens": sum(one.output_tokens for one in self.exchanges),
            "exchanges": [asdict(one) for one in self.exchanges],
        }

    # --- ASGI -------------------------------------------------------------------------------

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        """Answer a request; stop when its client leaves."""
        self._loop = asyncio.get_running_loop()
        if scope["type"] == "lifespan":
            return None
        body = b""
        while (event := await receive())["type"] == "http.request":
            body += event["body"]
            if not event.get("more_body"):
                break
        if scope["path"] == "/counts":
            return await _whole(send, 200, self.counts)
        shape = SHAPES.get(scope["path"])
        if shape is None:
            return await _whole(send, 404, {"error": {"message": "there is no such path"}})
        request = json.loads(body)
        entries = shape.read(request)
        self.calls_read.append(shape.read_calls(request))
        exchange = self._begin(entries)
        answering = asyncio.ensure_future(self._answer(shape, request, entries, exchange, send))
        leaving = asyncio.ensure_future(receive())
        await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        if not answering.done():
            exchange.state = "left"
            answering.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await answering
        return None

    def _begin(self, entries: list[tuple[str, str]]) -> Exchange:
        users = [at for at, (role, _) in enumerate(entries) if role == "user"]
        last = users[-1] if users else 0
        exchange = Exchange(
            len(self.exchanges) + 1,
            entries[last][1] if entries else "",
            sum(role == "model" for role, _ in entries[last:]),
            sum(len(text.split()) for _, text in entries),
        )
        self.exchanges.append(exchange)
        return exchange

    async def _answer(
        self, shape: Any, request: Any, entries: Any, exchange: Exchange, send: Any
    ) -> None:
        plan = self._plan(entries, exchange)
        if plan.never:
            await asyncio.Event().wait()
        if plan.status:
            exchange.state = "failed"
            error = {"message": f"told to fail with {plan.status}", "type": "told"}
            await _whole(send, plan.status, {"error": error})
            return
        if plan.garbage:
            exchange.state = "failed"
            await _whole(send, 200, {"nonsense": True})
            return
        answer = shape(request, exchange, plan.calls)
        if not request.get("stream"):
            text = "".join([word async for word in self._words(plan)])
            exchange.state = "finished"
            await _whole(send, 200, answer.whole(text))
            return
        await send(_start(200, "text/event-stream"))
        try:
            async for event in answer.stream(self._words(plan)):
                await send({"type": "http.response.body", "body": event, "more_body": True})
        except _Cut:
            exchange.state = "failed"
            return  # the server closes the connection in the middle of the body
        exchange.state = "finished"
        await send({"type": "http.response.body", "body": answer.END})

    async def _words(self, plan: Plan) -> AsyncIterator[str]:
        for number, word in enumerate(plan.text):
            if plan.pause:
                await asyncio.sleep(plan.pause)
            if word == "WAIT":
                await self._released.wait()
            elif word == "PAUSE":
                await self._steps.acquire()
            else:
                yield word if number == 0 else f" {word}"
        if plan.cut:
            raise _Cut

    def _plan(self, entries: list[tuple[str, str]], exchange: Exchange) -> Plan:
        plan = Plan()
        for command in _find_line(exchange).split(" + "):
            word, _, rest = command.partition(" ")
            match word:
                case "SAY":
                    results = [text for role, text in entries if role == "tool"]
                    users = sum(role == "user" for role, _ in entries)
                    said = rest.replace("$RESULT", results[-1] if results else "nothing")
                    said = said.replace("$USERS", str(users)).replace("\\ud83d", "\ud83d")
                    plan.text = said.split()
                case "CALL":
                    tool, _, arguments = rest.partition(" ")
                    identity = f"call_{exchange.number}_{len(plan.calls)}"
                    identity = identity if plan.identity is None else plan.identity
                    plan.calls.append((identity, tool, arguments or "{}"))
                case "ID":
                    plan.identity = rest.strip()
                case "SLOW":
                    plan.pause = float(rest)
                case "FAIL":
                    status, _, times = rest.partition(" ")
                    key = json.dumps(entries)
                    self._failures[key] += 1
                    if not times or self._failures[key] <= int(times):
                        plan.status = int(status)
                case "CACHED" | "WRITTEN":
                    setattr(exchange, f"{word.lower()}_tokens", int(rest))
                case "CUT" | "GARBAGE" | "NEVER":
                    setattr(plan, word.lower(), True)
        exchange.output_tokens = len(plan.text) + len(plan.calls)
        return plan


def _find_line(exchange: Exchange) -> str:
    """Return the line of the script that answers this request."""
    lines = [line.strip() for line in exchange.prompt.splitlines() if line.strip()]
    if not lines or not lines[0].startswith(COMMANDS):
        lines = [f"SAY You said: {exchange.prompt}"]
    return lines[min(exchange.line, len(lines) - 1)]


def _start(status: int, kind: str) -> dict[str, Any]:
    headers = [(b"content-type", kind.encode())]
    return {"type": "http.response.start", "status": status, "headers": headers}


async def _whole(send: Any, status: int, value: Any) -> None:
    await send(_start(status, "application/json"))
    await send({"type": "http.response.body", "body": json.dumps(value).encode()})


class _Server(uvicorn.Server):
    """Says when it accepts connections, and leaves none open when it ends, however late clients close theirs."""

    def __init__(self, config: uvicorn.Config, model: ModelServer) -> None:
        super().__init__(config)
        self.model, self.ready = model, threading.Event()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.model._loop = asyncio.get_running_loop()
        self.ready.set()

    async def shutdown(self, sockets: Any = None) -> None:
        for listener in self.servers:
            await close_listener(listener)
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)  # they are closed in the loop's next turn


@contextmanager
def serving_model(port: int = 0, model: ModelServer | None = None) -> Iterator[ModelServer]:
    """Serve a model from a thread, for as long as the block lasts; its `url` is a base URL of clients."""
    model, port = model or ModelServer(), port or free_port()
    config = uvicorn.Config(
        model,
        port=port,
        access_log=False,
        log_config=None,
        log_level="error",
        lifespan="off",
        loop="asyncio",
        ws="none",
    )
    config.timeout_graceful_shutdown = 1
    server = _Server(config, model)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert server.ready.wait(30), "the model server did not start"
    model.url = f"http://127.0.0.1:{port}/v1"
    try:
        yield model
    finally:
        server.should_exit = server.force_exit = True
        thread.join(30)


if __name__ == "__main__":
    uvicorn.run(ModelServer(), port=int(sys.argv[1]), lifespan="off", ws="none")
