"""A TCP proxy with faults, between a free port of 127.0.0.1 and a target; it runs in a thread of its own.

What it does is one value, `Behaviour`, changed from any thread at any time. A network holds back what it cannot deliver and
delivers it later; a machine that has forgotten a connection swallows it. The lab needs both: `HOLD` and `DROP`.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import random
import socket
import struct
import threading
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeVar

from tests.support.listeners import close_listener
from tests.support.ports import free_port

__all__ = ["Behaviour", "Proxy", "Way"]

T = TypeVar("T")
CHUNK = 65_536
#: SO_LINGER with no time: closing sends a reset.
RESET = struct.pack("ii", 1, 0)


class Way(enum.Enum):
    """What becomes of the bytes of one direction."""

    #: They arrive.
    PASS = "pass"
    #: They wait, and arrive when the way is free again; so does the end of the connection.
    HOLD = "hold"
    #: They are swallowed. When the way is free again, a connection that lost something is reset.
    DROP = "drop"


@dataclass(frozen=True, kw_only=True, slots=True)
class Behaviour:
    """What the proxy does. The default passes everything on."""

    #: From the client to the server.
    up: Way = Way.PASS
    #: From the server to the client.
    down: Way = Way.PASS
    #: Seconds before each piece is passed on, and how much more or less, by the proxy's seed.
    latency: float = 0.0
    jitter: float = 0.0
    #: Bytes a second of each connection in each direction; None = as fast as it can.
    rate: float | None = None
    #: New connections are refused by the system.
    refusing: bool = False
    #: All connections are reset every so many seconds.
    reset_every: float | None = None
    #: Each connection is reset once so many bytes, of both directions, have passed.
    cut_after: int | None = None
    #: Each connection is reset instead of passing on an answer in which these bytes occur.
    cut_at: bytes = b""

    @classmethod
    def black_hole(cls) -> Behaviour:
        """Connections are accepted; nothing comes through, nothing comes back, nothing ends."""
        return cls(up=Way.DROP, down=Way.DROP)

    @classmethod
    def partition(cls) -> Behaviour:
        """As a network that is cut, and later delivers what was sent."""
        return cls(up=Way.HOLD, down=Way.HOLD)

    @classmethod
    def one_way(cls) -> Behaviour:
        """What the client sends arrives, the answers are lost."""
        return cls(down=Way.DROP)


@dataclass(eq=False, slots=True)
class _Link:
    """One connection of a client, and ours to the target."""

    near: asyncio.StreamWriter
    task: asyncio.Task[None] = field(init=False)
    far: asyncio.StreamWriter | None = None
    passed: int = 0
    #: Bytes were swallowed, so it cannot go on.
    lossy: bool = False

    def cut(self) -> None:
        """Reset both ends and forget it."""
        self.abort()
        self.task.cancel()

    def abort(self) -> None:
        for writer in filter(None, (self.near, self.far)):
            with contextlib.suppress(OSError):
                kept = writer.get_extra_info("socket")
                kept.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            writer.transport.abort()


class Proxy:
    """A context manager; `port` is what the clients connect to."""

    host = "127.0.0.1"

    def __init__(self, port: int, host: str = "127.0.0.1", *, seed: int = 0) -> None:
        """Choose a port for a proxy to `host`:`port`. Nothing runs yet."""
        self.port = free_port()
        #: How many connections were accepted.
        self.accepted = 0
        self._target = (host, port)
        self._random = random.Random(seed)  # noqa: S311 - delays are no secrets
        self._behaviour = Behaviour()
        self._links: set[_Link] = set()
        self._server: asyncio.Server | None = None
        self._resetting: asyncio.Task[None] | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)

    def __enter__(self) -> Self:
        """Listen."""
        self._thread.start()
        try:
            self._call(self._begin())
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Reset what is open, and stop."""
        self.close()

    def close(self) -> None:
        """Reset what is open, and stop. Safe to call again."""
        if self._loop.is_closed():
            return
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    # For any thread

    @property
    def behaviour(self) -> Behaviour:
        """What it does now."""
        return self._behaviour

    @property
    def open(self) -> int:
        """How many connections are open."""
        return len(self._links)

    def behave(self, behaviour: Behaviour | None = None) -> None:
        """Change what it does, from now on and for open connections too; None passes everything on."""
        self._call(self._change(behaviour or Behaviour()))

    def retarget(self, port: int, host: str = "127.0.0.1") -> None:
        """Send new connections elsewhere; open ones stay where they are."""
        self._target = (host, port)

    def reset(self) -> None:
        """Reset every open connection, both ends."""
        self._call(self._reset_all())

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    # In the loop

    async def _begin(self) -> None:
        self._changed = asyncio.Event()
        await self._listen()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(
            self._accept, self.host, self.port, reuse_address=True, backlog=1000
        )

    async def _end(self) -> None:
        await self._change(Behaviour(refusing=True))
        tasks = [link.task for link in self._links]
        await self._reset_all()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _change(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        self._reset_lossy()
        await self._open_or_close()
        self._repeat_resets()

    async def _open_or_close(self) -> None:
        if self._behaviour.refusing and self._server is not None:
            closing, self._server = self._server, None
            await close_listener(closing)
        elif not self._behaviour.refusing and self._server is None:
            await self._listen()

    def _reset_lossy(self) -> None:
        if Way.DROP in (self._behaviour.up, self._behaviour.down):
            return
        for link in tuple(self._links):
            if link.lossy:
                link.cut()

    def _repeat_resets(self) -> None:
        if self._resetting is not None:
            self._resetting.cancel()
            self._resetting = None
        if (seconds := self._behaviour.reset_every) is not None:
            self._resetting = asyncio.create_task(self._reset_again_and_again(seconds))

    async def _reset_again_and_again(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            await self._reset_all()

    async def _reset_all(self) -> None:
        for link in tuple(self._links):
            link.cut()

    def _accept(self, reader: asyncio.StreamReader, near: asyncio.StreamWriter) -> None:
        self.accepted += 1
        link = _Link(near)
        link.task = self._loop.create_task(self._serve(link, reader))
        self._links.add(link)
        link.task.add_done_callback(lambda _: self._links.discard(link))

    async def _serve(self, link: _Link, reader: asyncio.StreamReader) -> None:
        """One connection, from its first byte to its last. The target hears of it with the first byte."""
        try:
            async with asyncio.TaskGroup() as pumps:
                await self._up(link, reader, pumps)
        except* OSError:
            pass
        finally:
            link.abort()

    async def _up(
        self, link: _Link, reader: asyncio.StreamReader, pumps: asyncio.TaskGroup
    ) -> None:
        async for chunk in self._allowed(link, reader, "up"):
            if link.far is None:
                far_reader, link.far = await asyncio.open_connection(*self._target)
                pumps.create_task(self._down(link, far_reader))
            await self._write(link, link.far, chunk)
        if link.far is not None:
            link.far.write_eof()

    async def _down(self, link: _Link, reader: asyncio.StreamReader) -> None:
        async for chunk in self._allowed(link, reader, "down"):
            if self._behaviour.cut_at and self._behaviour.cut_at in chunk:
                raise ConnectionAbortedError("cut before this answer")
            await self._write(link, link.near, chunk)
        link.near.write_eof()

    async def _allowed(
        self, link: _Link, reader: asyncio.StreamReader, direction: str
    ) -> AsyncIterator[bytes]:
        """What comes from one end and may go to the other, when it may; returns when that end is to hear of the end."""
        while True:
            chunk = await reader.read(CHUNK)
            while (way := getattr(self._behaviour, direction)) is Way.HOLD:
                await self._changed.wait()
            if way is Way.DROP:
                link.lossy = True
                if not chunk:
                    await self._never()
                continue
            await self._delay(len(chunk))
            if not chunk:
                return
            yield chunk

    async def _never(self) -> None:
        """An end that is swallowed is never heard of; the link is reset when the way is free again."""
        await asyncio.Event().wait()

    async def _delay(self, size: int) -> None:
        behaviour = self._behaviour
        if behaviour.rate is not None:
            await asyncio.sleep(size / behaviour.rate)
        if behaviour.latency or behaviour.jitter:
            extra = self._random.uniform(-behaviour.jitter, behaviour.jitter)
            await asyncio.sleep(max(0.0, behaviour.latency + extra))

    async def _write(self, link: _Link, writer: asyncio.StreamWriter, chunk: bytes) -> None:
        most = self._behaviour.cut_after
        left = len(chunk) if most is None else max(0, most - link.passed)
        writer.write(chunk[:left])
        await writer.drain()
        link.passed += len(chunk)
        if left < len(chunk):
            raise ConnectionAbortedError(f"cut after {most} bytes")
