"""A telephone line to a server: calls on it can be silenced for good while new ones are put through, or cut."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Self

from tests.support.listeners import close_listener
from tests.support.ports import free_port

__all__ = ["Line"]


class Line:
    """A context manager; `port` is what the clients connect to. Runs in a thread of its own."""

    def __init__(self, host: str, port: int) -> None:
        """A line to that server. Nothing runs yet."""
        self._target = (host, port)
        self.port = free_port()
        self._calls: dict[asyncio.StreamWriter, asyncio.Event] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        """Open it."""
        self._thread.start()
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        """Close it for good."""
        self.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def open(self) -> None:
        """Take calls."""
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(10)

    def close(self) -> None:
        """Cut all calls and take no new ones."""
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)

    def silence(self) -> None:
        """Pass nothing on any more in the calls of this moment, and do not end them."""
        for silent in tuple(self._calls.values()):
            self._loop.call_soon_threadsafe(silent.set)

    def cut(self) -> None:
        """End the calls of this moment."""
        self._loop.call_soon_threadsafe(self._cut)

    async def _open(self) -> None:
        self._server = await asyncio.start_server(self._call, "127.0.0.1", self.port)

    async def _close(self) -> None:
        if self._server is not None:
            await close_listener(self._server)
        self._cut()
        await asyncio.gather(*self._tasks)

    def _cut(self) -> None:
        for writer in tuple(self._calls):
            writer.transport.abort()

    async def _call(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        silent, task = asyncio.Event(), asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._calls[writer] = silent
        with contextlib.suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection(*self._target)
            self._calls[far_writer] = silent
            with contextlib.suppress(OSError):
                await asyncio.gather(
                    self._pass_on(reader, far_writer, silent),
                    self._pass_on(far_reader, writer, silent),
                )
            far_writer.transport.abort()
            del self._calls[far_writer]
        writer.transport.abort()
        del self._calls[writer]

    @staticmethod
    async def _pass_on(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, silent: asyncio.Event
    ) -> None:
        while data := await reader.read(65536):
            if not silent.is_set():
                writer.write(data)
        if not silent.is_set():
            writer.transport.abort()
