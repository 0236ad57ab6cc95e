"""The transport under clients of MCP: httpx2 over a session whose every call passes the guard of outbound calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

import aiohttp
import httpx2
from yarl import URL

from a2a_tasks.agents.http import HEAD_SECONDS, open_session
from a2a_tasks.conf import conf

__all__ = ["GuardedTransport"]

#: Headers that the session writes itself, and those of a body that it has decoded.
OURS = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding"})
DECODED = frozenset({"content-encoding", "content-length", "transfer-encoding"})
#: Least seconds between two streams that the client opens by itself: a server may tell it to wait for none.
REOPEN_SECONDS = 1.0
#: Seconds for the answer to the end of a session, for which nobody waits.
END_SECONDS = 5.0


class GuardedTransport(httpx2.AsyncBaseTransport):
    """One connection to a server. Its credentials go to the origin of its URL alone.

    `once`: it is for one call, so that all its answers together have at most FETCH_BYTES; else each of them.
    """

    def __init__(self, url: str, credentials: Mapping[str, str], *, once: bool = False) -> None:
        self._origin, self._credentials = URL(url).origin(), credentials
        self._session: aiohttp.ClientSession | None = None
        self._once, self._bytes = once, 0
        #: When the next stream may be opened, by the clock of the loop.
        self._reopens_at = 0.0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, and return its answer with the body still to come. Redirects are not followed here."""
        url = URL(str(request.url), encoded=True)
        headers = {name: text for name, text in request.headers.items() if name not in OURS}
        if url.origin() == self._origin:
            headers |= self._credentials
        if self._session is None:
            self._session = open_session()
        body = await request.aread()
        if request.method == "GET":
            await self._space_out()
        silence = END_SECONDS if request.method == "DELETE" else HEAD_SECONDS
        try:
            answer = await self._session.request(
                request.method,
                url,
                headers=headers,
                data=body or None,
                allow_redirects=False,
                # An agent behind the server may be silent for long.
                timeout=aiohttp.ClientTimeout(
                    sock_connect=float(conf.FETCH_SECONDS), sock_read=silence
                ),
            )
        except (aiohttp.ClientError, OSError, TimeoutError) as fault:
            raise httpx2.ConnectError(
                str(fault) or type(fault).__name__, request=request
            ) from fault
        return httpx2.Response(
            answer.status, headers=_list_headers(answer.headers), stream=_Body(answer, self._count)
        )

    async def _space_out(self) -> None:
        now = asyncio.get_running_loop().time()
        wait = max(0.0, self._reopens_at - now)
        self._reopens_at = now + wait + REOPEN_SECONDS
        await asyncio.sleep(wait)

    def _count(self, size: int, of_this: int) -> None:
        """Count bytes of an answer, which has had `of_this` with them. Raises ReadError for too many."""
        self._bytes += size
        limit = int(conf.FETCH_BYTES)
        if (self._bytes if self._once else of_this) > limit:
            raise httpx2.ReadError(f"The answer is longer than {limit} bytes.")

    async def aclose(self) -> None:
        """Close the session."""
        if self._session is not None:
            await self._session.close()


def _list_headers(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(name, text) for name, text in headers.items() if name.lower() not in DECODED]


class _Body(httpx2.AsyncByteStream):
    """The body of an answer as it comes; `count` counts its bytes."""

    def __init__(self, answer: aiohttp.ClientResponse, count: Callable[[int, int], None]) -> None:
        self._answer, self._count = answer, count

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for piece in self._answer.content.iter_any():
                size += len(piece)
                self._count(len(piece), size)
                yield piece
        except (aiohttp.ClientError, OSError, TimeoutError) as fault:
            raise httpx2.ReadError(str(fault) or type(fault).__name__) from fault

    async def aclose(self) -> None:
        self._answer.close()
