"""A receiver that keeps what it is sent and answers as it is told, and webhooks of tasks that lead there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from a2a_push.delivery import Deliverer
from a2a_push.models import Delivery, PushConfig
from a2a_push.store import configs
from a2a_tasks.protocol.values import PushConfig as Config
from a2a_tasks.store.db import run_in_thread
from tests.support.execution.waiting import until
from tests.support.push.receivers import Seen, answer, serving
from tests.support.store.world import ALICE, Pen, held

__all__ = ["Inbox", "OK", "delivering", "inbox", "pen", "register", "row", "settled", "told"]

OK = answer("200 OK")
#: What is answered to a request: bytes, or none and the connection closed.
Answer = Callable[[Seen], Awaitable[bytes]]


class Inbox:
    """What came in, and what is answered to it: to each request the next of `answers`, then 200."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.seen: list[Seen] = []
        self.answers: list[bytes | Answer] = []
        #: Requests being answered now, and the most there were.
        self.open = self.most = 0
        self.over = asyncio.Event()

    def url(self, path: str = "/hook") -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}{path}"

    @property
    def ids(self) -> list[str]:
        """The `webhook-id` of all that came."""
        return [seen.header("webhook-id")[0] for seen in self.seen]

    @property
    def said(self) -> list[str]:
        """What came, in a word each: a state, or the text of an artifact."""
        return self.words(self.seen)

    @staticmethod
    def words(seen: Iterable[Seen]) -> list[str]:
        """The same of these."""
        return [word(json.loads(each.body)) for each in seen]

    async def answer(self, seen: Seen) -> bytes:
        """Keep a request, and answer it."""
        self.seen.append(seen)
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            following = self.answers.pop(0) if self.answers else OK
            return following if isinstance(following, bytes) else await following(seen)
        finally:
            self.open -= 1

    async def never(self, seen: Seen) -> bytes:
        """An answer that does not come."""
        await self.over.wait()
        return b""

    async def has(self, count: int) -> None:
        """Wait until so many have come."""
        await until(lambda: len(self.seen) >= count)


def word(body: dict[str, Any]) -> str:
    """What a notification tells, in a word."""
    if "artifactUpdate" in body:
        parts = body["artifactUpdate"]["artifact"]["parts"]
        return "".join(part["text"] for part in parts)
    status = (body.get("statusUpdate") or body.get("task") or body)["status"]
    return str(status["state"]).removeprefix("TASK_STATE_").lower()


@asynccontextmanager
async def inbox() -> AsyncIterator[Inbox]:
    """A receiver for a while."""
    made = Inbox(0)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            said = await made.answer(await read(reader))
            if not said:
                return
            writer.write(said)
            await writer.drain()

    async with serving(serve) as made.port:
        try:
            yield made
        finally:
            made.over.set()


async def read(reader: asyncio.StreamReader) -> Seen:
    """One request."""
    text = await reader.readuntil(b"\r\n\r\n")
    line, *lines = text.decode("latin-1").rstrip("\r\n").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    headers = tuple((name.lower(), value.strip()) for name, _, value in pairs)
    length = next((int(value) for name, value in headers if name == "content-length"), 0)
    return Seen(line, headers, await reader.readexactly(length))


@asynccontextmanager
async def delivering(*, slots: int | None = None, alone: bool = False) -> AsyncIterator[Deliverer]:
    """A deliverer of its own, as a worker process has one; it ends as at a drain without time."""
    made = Deliverer(slots=slots, alone=alone)
    made.start()
    try:
        yield made
    finally:
        await made.drain(0)


async def pen(task: str = "task-1", **changes: Any) -> Pen:
    """Who writes for a task that has just begun."""
    return Pen(await run_in_thread(held, task, **changes))


async def register(url: str, task: str = "task-1", id_: str = "c-1", **changes: Any) -> None:
    """A webhook of a task."""
    config = Config(url=url, id=id_, task_id=task, **{"dialect": "v10", **changes})
    await run_in_thread(configs.create, ALICE, config)


async def row(id_: str = "c-1") -> PushConfig:
    """A webhook's row, with its receiver."""
    return await run_in_thread(
        PushConfig.objects.select_related("receiver", "task").get, public_id=id_
    )


async def told(**which: Any) -> list[Delivery]:
    """Deliveries, as they were made."""
    return await run_in_thread(lambda: list(Delivery.objects.filter(**which).order_by("pk")))


async def settled(count: int = 1, **which: Any) -> list[Delivery]:
    """So many deliveries, once none of them is pending."""

    async def all_are() -> list[Delivery]:
        rows = await told(**which)
        done = len(rows) >= count and all(row.settled_at for row in rows)
        return rows if done else []

    found: list[Delivery] = await until(all_are)
    return found
