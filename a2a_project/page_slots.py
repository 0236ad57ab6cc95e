"""How many requests Django works on at once (`A2A_MAX_PAGES`): each takes a thread, and a connection to the database.

Without a bound, clients at a page would take both from the protocol, which is served beside Django.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from a2a_tasks.bindings.http import Receive, Scope, Send, respond
from a2a_tasks.conf import conf

__all__ = ["MOST_WAITING", "PageSlots"]

#: Requests that may wait for those before them.
MOST_WAITING = 64
BUSY = b"Too many pages are asked for just now. Try again in a second.\n"
HEADERS = [
    (b"content-type", b"text/plain"),
    (b"retry-after", b"1"),
    (b"cache-control", b"no-store"),
]


class PageSlots:
    """An ASGI application with a bound on the requests that it handles at once."""

    def __init__(self, application: Callable[..., Awaitable[None]]) -> None:
        self._application = application
        self._waiting = 0
        self._slots: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = (
            weakref.WeakKeyDictionary()
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request when there is a slot; 503 if too many wait for one."""
        slot = self._slots.setdefault(
            asyncio.get_running_loop(), asyncio.Semaphore(max(1, conf.MAX_PAGES))
        )
        if slot.locked() and self._waiting >= MOST_WAITING:
            await respond(send, 503, BUSY, HEADERS)
            return
        self._waiting += 1
        try:
            await slot.acquire()
        finally:
            self._waiting -= 1
        await self._serve(slot, scope, receive, send)

    async def _serve(
        self, slot: asyncio.Semaphore, scope: Scope, receive: Receive, send: Send
    ) -> None:
        held = True

        async def sent(message: MutableMapping[str, Any]) -> None:
            """What comes in pieces, a file or an export, takes as long as its reader likes: it leaves its slot."""
            nonlocal held
            if held and message.get("more_body"):
                held = False
                slot.release()
            await send(message)

        try:
            await self._application(scope, receive, sent)
        finally:
            if held:
                slot.release()
