"""The limit on requests that Django serves at once (`MAX_PAGES`): each takes a thread and a database connection.

Without it, clients of pages would take both from the protocol, which is served without Django.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from a2a_tasks.bindings.http import Receive, Scope, Send, respond
from a2a_tasks.conf import conf

__all__ = ["MAX_WAITING", "PageSlots"]

#: Maximum number of requests that wait for a slot.
MAX_WAITING = 64
#: Maximum bytes of an answer that is buffered until Django has finished with it.
WHOLE_BYTES = 8 * 1024 * 1024
BUSY = b"Too many pages are asked for just now. Try again in a second.\n"
HEADERS = [
    (b"content-type", b"text/plain"),
    (b"retry-after", b"1"),
    (b"cache-control", b"no-store"),
]


class PageSlots:
    """An ASGI application with a limit on the requests that it serves at once."""

    def __init__(self, application: Callable[..., Awaitable[None]]) -> None:
        self._application = application
        self._waiting = 0
        self._slots: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = (
            weakref.WeakKeyDictionary()
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request when there is a slot; 503 if too many wait for one."""
        if await self.refuses(send):
            return
        slot = self._slot()
        self._waiting += 1
        try:
            await slot.acquire()
        finally:
            self._waiting -= 1
        await self._serve(slot, scope, receive, send)

    async def refuses(self, send: Send) -> bool:
        """Answer 503 if too many requests wait for a slot; return whether it did."""
        full = self._slot().locked() and self._waiting >= MAX_WAITING
        if full:
            await respond(send, 503, BUSY, HEADERS)
        return full

    def _slot(self) -> asyncio.Semaphore:
        return self._slots.setdefault(
            asyncio.get_running_loop(), asyncio.Semaphore(max(1, conf.MAX_PAGES))
        )

    async def _serve(
        self, slot: asyncio.Semaphore, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Hold the slot until Django has finished with the request, and send a complete answer after that.

        Its client may read slowly, and holds neither a thread nor a connection meanwhile.
        """
        answer: list[MutableMapping[str, Any]] = []
        has_slot = whole = True

        async def take(message: MutableMapping[str, Any]) -> None:
            """Buffer a complete answer. One in pieces, as an export or a large file, gives up its slot."""
            nonlocal has_slot, whole
            if message["type"] == "http.response.start":
                whole = 0 <= _length(message) <= WHOLE_BYTES
            elif has_slot and not whole:
                has_slot = False
                slot.release()
            if whole:
                answer.append(message)
            else:
                await send(message)

        try:
            await self._application(scope, receive, take)
        finally:
            if has_slot:
                slot.release()
        # The body in one piece: the rest of a slow client's answer then counts as unread (unread.py).
        start, body = answer[:1], b"".join(message.get("body", b"") for message in answer[1:])
        answer.clear()
        for message in [*start, *([{"type": "http.response.body", "body": body}] if start else [])]:
            await send(message)


def _length(start: MutableMapping[str, Any]) -> int:
    """Return the Content-Length of an answer; -1 = it has none."""
    for name, value in start.get("headers", ()):
        if name.lower() == b"content-length":
            return int(value)
    return -1
