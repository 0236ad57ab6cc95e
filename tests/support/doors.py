"""Clients of the doors in the process of the host, whose every byte can be seen."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn

from a2a_project.asgi import application
from tests.journeys.waiting import eventually
from tests.support.bindings.client import Client, Exchange, Response
from tests.support.ports import free_port

__all__ = ["ChatStream", "Chats", "RunStream", "Runs", "serving", "user"]


def user(text: Any) -> dict[str, Any]:
    """A message of the user."""
    return {"role": "user", "content": text}


@dataclass
class ChatStream:
    """A completion in chunks."""

    exchange: Exchange
    #: The text so far.
    text: str = ""
    #: All chunks, `[DONE]` as a string.
    chunks: list[Any] = field(default_factory=list)
    _rest: bytes = b""

    async def next(self) -> Any:
        """The next chunk; None at the end."""
        while b"\n\n" not in self._rest:
            piece = await self.exchange.piece()
            if piece is None:
                assert not self._rest
                return None
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n\n")
        data = line.removeprefix(b"data: ")
        chunk = "[DONE]" if data == b"[DONE]" else json.loads(data)
        self.chunks.append(chunk)
        for choice in chunk.get("choices", ()) if isinstance(chunk, dict) else ():
            self.text += choice["delta"].get("content") or ""
        return chunk

    async def to_the_end(self) -> str:
        """The whole text."""
        while await self.next() is not None:
            pass
        return self.text

    async def until(self, text: str) -> None:
        """Read until the text has come."""
        while text not in self.text:
            assert await self.next() is not None, f"{text!r} never came"


@dataclass
class Chats:
    """A front end: it keeps the history and sends all of it."""

    client: Client
    model: str
    headers: Mapping[str, str] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)

    async def ask(
        self, messages: Any, headers: Mapping[str, str] | None = None, **more: Any
    ) -> Response:
        """Send these messages and nothing else."""
        body = {"model": self.model, "messages": messages, **more}
        headers = {**self.headers, **(headers or {})}
        return await self.client.post("/v1/chat/completions", body, headers)

    async def say(self, text: Any, **more: Any) -> str:
        """Continue the conversation; return the answer."""
        self.history.append(user(text))
        answer = await self.ask(self.history, **more)
        assert answer.status == 200, answer.body
        said = answer.json["choices"][0]["message"]["content"]
        self.history.append({"role": "assistant", "content": said})
        assert isinstance(said, str)
        return said

    @asynccontextmanager
    async def stream(
        self, messages: Any, headers: Mapping[str, str] | None = None, **more: Any
    ) -> AsyncIterator[ChatStream]:
        """Send these messages, and read the answer as it comes."""
        body = {"model": self.model, "messages": messages, "stream": True, **more}
        given = {"content-type": "application/json", **self.headers, **(headers or {})}
        async with self.client.exchange("POST", "/v1/chat/completions", given) as exchange:
            exchange.upload(json.dumps(body).encode())
            await exchange.begin()
            yield ChatStream(exchange)


@dataclass
class Runs:
    """A front end that speaks AG-UI: it keeps the messages of one thread and sends all of them."""

    client: Client
    agent: str
    thread: str = "thread-1"
    headers: Mapping[str, str] = field(default_factory=dict)
    messages: list[dict[str, Any]] = field(default_factory=list)
    runs: int = 0

    @property
    def path(self) -> str:
        """The address of the agent."""
        return f"/agents/{self.agent}/ag-ui"

    def make(self, **more: Any) -> dict[str, Any]:
        """The input of the next run."""
        self.runs += 1
        about = {"threadId": self.thread, "runId": f"{self.thread}-run-{self.runs}"}
        rest: dict[str, Any] = {"tools": [], "context": [], "state": {}, "forwardedProps": {}}
        return {**about, **rest, "messages": self.messages, **more}

    @asynccontextmanager
    async def begin(self, body: Any) -> AsyncIterator[RunStream]:
        """Begin a run and read its events as they come."""
        given = {"content-type": "application/json", **self.headers}
        async with self.client.exchange("POST", self.path, given) as exchange:
            exchange.upload(json.dumps(body).encode())
            await exchange.begin()
            yield RunStream(exchange)

    async def run(self, **more: Any) -> list[dict[str, Any]]:
        """Run to the end."""
        async with self.begin(self.make(**more)) as stream:
            events = await stream.to_the_end()
        if text := "".join(e["delta"] for e in events if e["type"] == "TEXT_MESSAGE_CHUNK"):
            self.messages.append({"id": f"a{self.runs}", "role": "assistant", "content": text})
        return events

    async def say(self, text: Any, **more: Any) -> list[dict[str, Any]]:
        """Say something, and run."""
        self.messages.append({"id": f"u{len(self.messages)}", "role": "user", "content": text})
        return await self.run(**more)


@dataclass
class RunStream:
    """The events of a run."""

    exchange: Exchange
    events: list[dict[str, Any]] = field(default_factory=list)
    comments: int = 0
    _rest: bytes = b""

    async def next(self) -> dict[str, Any] | None:
        """The next event; None at the end."""
        while True:
            line, newline, rest = self._rest.partition(b"\n")
            if not newline:
                piece = await self.exchange.piece()
                if piece is None:
                    assert not self._rest
                    return None
                self._rest += piece
                continue
            self._rest = rest
            assert b"\r" not in line
            if line.startswith(b": "):
                self.comments += 1
            elif line:
                event: dict[str, Any] = json.loads(line.removeprefix(b"data: "))
                self.events.append(event)
                return event

    async def until(self, kind: str) -> dict[str, Any]:
        """Read up to an event of a type."""
        while (event := await self.next()) is not None:
            if event["type"] == kind:
                return event
        raise AssertionError(f"no {kind} came, but {self.events}")

    async def to_the_end(self) -> list[dict[str, Any]]:
        """All events."""
        while await self.next() is not None:
            pass
        return self.events


class _Server(uvicorn.Server):
    """It leaves the signals of the process to pytest."""

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield


@asynccontextmanager
async def serving() -> AsyncIterator[str]:
    """Serve the host of this process at a port; its base URL."""
    port = free_port()
    config = uvicorn.Config(application, port=port, lifespan="off", log_config=None, ws="none")
    server = _Server(config)
    task = asyncio.create_task(server.serve())
    await eventually(lambda: asyncio.sleep(0, server.started), "the server listens")
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        await task
