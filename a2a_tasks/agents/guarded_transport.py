"""The transport under clients of MCP: httpx2 over a session whose every call passes the guard of outbound calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

import aiohttp
import httpx2
from yarl import URL

from a2a_tasks.agents.http import HEAD_SECONDS, open_session
from a2a_tasks.conf import conf

__all__ = ["GuardedTransport"]

#: Headers that the session writes itself, and those of a body that it has decoded.
OURS = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding"})
DECODED = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class GuardedTransport(httpx2.AsyncBaseTransport):
    """One connection to a server. Its credentials go to the origin of its URL alone."""

    def __init__(self, url: str, credentials: Mapping[str, str]) -> None:
        self._origin, self._credentials = URL(url).origin(), credentials
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, and return its answer with the body still to come. Redirects are not followed here."""
        url = URL(str(request.url), encoded=True)
        headers = {name: text for name, text in request.headers.items() if name not in OURS}
        if url.origin() == self._origin:
            headers |= self._credentials
        if self._session is None:
            self._session = open_session()
        body = await request.aread()
        try:
            answer = await self._session.request(
                request.method,
                url,
                headers=headers,
                data=body or None,
                allow_redirects=False,
                # An agent behind the server may be silent for long.
                timeout=aiohttp.ClientTimeout(
                    sock_connect=float(conf.FETCH_SECONDS), sock_read=HEAD_SECONDS
                ),
            )
        except (aiohttp.ClientError, OSError, TimeoutError) as fault:
            raise httpx2.ConnectError(
                str(fault) or type(fault).__name__, request=request
            ) from fault
        return httpx2.Response(
            answer.status, headers=_list_headers(answer.headers), stream=_Body(answer)
        )

    async def aclose(self) -> None:
        """Close the session."""
        if self._session is not None:
            await self._session.close()


def _list_headers(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(name, text) for name, text in headers.items() if name.lower() not in DECODED]


class _Body(httpx2.AsyncByteStream):
    """The body of an answer as it comes, up to FETCH_BYTES."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, limit = 0, int(conf.FETCH_BYTES)
        try:
            async for piece in self._answer.content.iter_any():
                if (size := size + len(piece)) > limit:
                    raise httpx2.ReadError(f"The answer is longer than {limit} bytes.")
                yield piece
        except (aiohttp.ClientError, OSError, TimeoutError) as fault:
            raise httpx2.ReadError(str(fault) or type(fault).__name__) from fault

    async def aclose(self) -> None:
        self._answer.close()
