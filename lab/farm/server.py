"""The farm's process: `python -m lab.farm serve FILE` listens where the file says, and writes down what comes.

Sockets, and no HTTP server, which would be too polite. What is written down is checked afterwards, elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import msgspec

from lab.farm.ways import WAYS, id_of, said, take
from lab.faultlab.history import History
from tests.support.push.receivers import Authority, Seen, answer, old, request, serving

__all__ = ["BARE", "PORTS", "Farm", "Place", "run"]

#: What listens.
PORTS = ("http", "deaf", "unread", "self-signed", "wrong-name", "expired", "old-tls", "canary")
#: Requests of one process that wait in a queue of the kernel.
BACKLOG = 1000
READY = "the farm is open"
#: A path for others than the host: what comes there is taken, and not written down.
BARE = "/bare"


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """The file: where to be, and what to know."""

    #: Where `arrivals.jsonl` and `authority.pem` are put.
    directory: str
    ports: dict[str, int]
    limit: float
    #: URLs of the host, for those who call it.
    webs: list[str] = []


class Farm:
    """All receivers. The ground of the ways."""

    def __init__(self, place: Place) -> None:
        self.limit, self.ports = place.limit, place.ports
        self.tries: Counter[str] = Counter()
        self._history = History(Path(place.directory) / "arrivals.jsonl")
        self._webs = place.webs
        self._http = httpx.AsyncClient(trust_env=False, timeout=30)

    def tell(self, what: str, **record: Any) -> object:
        """Write something down."""
        return self._history.append(what, **record)

    def answered(self, seen: Seen, status: int, wait: float = 0.0) -> None:
        """Write down that this was the answer, and what it asks to wait; before it is sent."""
        path = seen.path.partition("?")[0]
        told = {"id": id_of(seen), "tag": said(seen, "tag"), "path": path}
        self.tell("answered", **told, status=status, wait=wait)

    async def call(self, method: str, path: str, said: Any = None, key: str = "") -> Any:
        """Call the host. Raises httpx.HTTPError."""
        headers = {"A2A-Version": "1.0"} | ({"Idempotency-Key": key} if key else {})
        url = f"{self._webs[0]}/agents/{path}"
        found = await self._http.request(method, url, json=said, headers=headers)
        return found.raise_for_status().json() if found.content else None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection, each in the way of its path."""
        while not writer.is_closing():
            seen = await request(reader)
            if seen.path == BARE:  # no business of the host's
                writer.write(answer("200 OK", body=b"thanks"))
                continue
            self._arrived(seen)
            number = seen.path.removeprefix("/").partition("?")[0].partition("/")[0]
            does = WAYS[int(number)].does if number.isdecimal() else None
            if does is None:
                take(seen, writer, self)  # a receiver as it should be
            else:
                await does(seen, writer, self)
            await writer.drain()

    async def unread(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Have the connection, and nothing else of it."""
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async def intruded(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Nobody may come here."""
        self.tell("intruded", peer=str(writer.get_extra_info("peername")))

    def _arrived(self, seen: Seen) -> None:
        id_, tag = id_of(seen), said(seen, "tag")
        for name in (id_, seen.path.partition("?")[0], f"first {tag}"):
            self.tries[name] += 1
        told = {
            name: (seen.header(header) or [""])[0]
            for name, header in (
                ("timestamp", "webhook-timestamp"),
                ("signature", "webhook-signature"),
                ("token", "x-a2a-notification-token"),
                ("authorization", "authorization"),
            )
        }
        body = seen.body.decode("utf-8", "surrogateescape")
        self.tell("arrived", id=id_, tag=tag, path=seen.path.partition("?")[0], body=body, **told)


def contexts(directory: Path) -> Mapping[str, ssl.SSLContext]:
    """The server's side of TLS, by port; who vouches for some of it is in `authority.pem`."""
    authority = Authority(directory)
    return {
        "self-signed": authority.server("self-signed.farm.test", trusted=False),
        "wrong-name": authority.server("another.farm.test"),
        "expired": authority.server("expired.farm.test", days=-1),
        "old-tls": old(authority.server("old-tls.farm.test")),
    }


@contextlib.asynccontextmanager
async def opened(place: Place) -> AsyncIterator[Farm]:
    """The farm, listening everywhere."""
    farm, tls = Farm(place), contexts(Path(place.directory))
    special = {"unread": farm.unread, "canary": farm.intruded}
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(
            socket.create_server(("127.0.0.1", place.ports["deaf"]), backlog=BACKLOG)
        )
        for name in PORTS:
            if name != "deaf":
                serve = special.get(name, farm.serve)
                port = place.ports[name]
                await stack.enter_async_context(
                    serving(serve, tls.get(name), port=port, backlog=BACKLOG)
                )
        yield farm


async def _run(place: Place) -> None:
    async with opened(place):
        sys.stdout.write(READY + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def run(path: str) -> None:
    """Be the farm until killed."""
    asyncio.run(_run(msgspec.json.decode(Path(path).read_bytes(), type=Place)))
