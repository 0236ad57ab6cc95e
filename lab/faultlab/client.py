"""Scripted clients: stubborn as clients of a durable host should be, and each tells the history what it saw."""

from __future__ import annotations

import asyncio
import json
import random
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx

__all__ = ["SHAPES", "Client", "Gone", "settled"]

#: Seconds a request without a stream may take: a blocking send waits for its agent.
PATIENCE = 60.0
TERMINAL = {
    "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED",
    "TASK_STATE_CANCELED",
    "TASK_STATE_REJECTED",
}
WAITS = {"TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED"}
#: Dialects in which clients read what 1.0 clients have sent.
OLD = ("0.3", "0.2")
#: Which agent a shape is sent to, and what it is told.
SHAPES = {
    "short": ("lab-short", "1"),
    "stream": ("lab-stream", "15"),
    "medium": ("lab-stream", "35"),
    "long": ("lab-stream", "90"),
    "thread": ("lab-thread", "10"),
    "steps": ("lab-steps", "4"),
    "park": ("lab-park", "2"),
    "tell": ("lab-tell", "2"),
    "ask": ("lab-ask", "question"),
    "tree": ("lab-tree", "question"),
    "delegate": ("lab-delegate", "1"),
    "forever": ("lab-forever", "1"),
    "careful": ("lab-careful", "8"),
    "blocking": ("lab-blocking", "100"),
    "marathon": ("lab-stream", "350"),
    "poison": ("lab-poison", "10"),
    "locking": ("lab-locking", "10"),
    "hungry": ("lab-hungry", "800"),
    "large": ("lab-large", "8"),
}

Tell = Callable[..., None]


class Gone(Exception):
    """The client gave up: nothing came for too long."""


def settled(view: dict[str, Any]) -> bool:
    """Has the task ended, or does it wait for its client?"""
    return view["status"]["state"] in TERMINAL | WAITS


class Client:
    """One client of the lab's web processes. `urls` by the names of their processes."""

    def __init__(
        self,
        urls: dict[str, str],
        tell: Tell,
        rng: random.Random,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.urls, self.tell, self.rng = urls, tell, rng
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
        timeout = httpx.Timeout(PATIENCE, connect=5.0, pool=None)
        self._http = httpx.AsyncClient(
            trust_env=False, timeout=timeout, limits=limits, transport=transport
        )
        #: Seconds after which a request without an answer is given up and made again.
        self.patience = PATIENCE

    async def close(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    # --- whole stories --------------------------------------------------------------------

    async def carry(self, shape: str, *, how: str = "") -> str:
        """Have a task of this shape done, whatever happens; returns its id. It is checked by the history."""
        agent, text = SHAPES[shape]
        how = how or self.rng.choice(("stream", "block", "poll"))
        task = await self.send(agent, text, shape=shape, how=how)
        view = await self.until_settled(agent, task)
        if shape in {"ask", "tree"} and view["status"]["state"] in WAITS:
            answer = f"answer {self.rng.getrandbits(32):x}" if shape == "tree" else "answer"
            await self.send(agent, answer, shape=shape, how=how, task=task)
            await self.until_settled(agent, task)
        await self.look(agent, task)
        return task

    async def look(self, agent: str, task: str) -> None:
        """Read what became of a task in every way: by GetTask of each dialect, and as a stream of its whole log."""
        await self.get(agent, task)
        for dialect in OLD:
            await self.get_old(agent, task, dialect)
        await self.replay(agent, task)

    async def cancel_when_working(self, shape: str = "forever") -> str:
        """Begin a task, see it work, and cancel it."""
        agent, text = SHAPES[shape]
        task = await self.send(agent, text, shape=shape, how="poll")
        while (view := await self.get(agent, task))["status"]["state"] == "TASK_STATE_SUBMITTED":
            await asyncio.sleep(0.05)
        if not settled(view):
            await self.cancel(agent, task)
        await self.get(agent, task)
        await self.replay(agent, task)
        return task

    # --- operations -----------------------------------------------------------------------

    async def send(
        self, agent: str, text: str, *, shape: str, how: str, task: str = "", key: str = ""
    ) -> str:
        """Send until it is accepted, always under one key; streams are followed to their end. Returns the task's id."""
        key = key or uuid.UUID(int=self.rng.getrandbits(128)).hex
        said: dict[str, Any] = {"messageId": key, "role": "ROLE_USER", "parts": [{"text": text}]}
        if task:
            said["taskId"] = task
        while True:
            name = self._web()
            self.tell(what="sent", key=key, shape=shape, agent=agent, process=name, text=text)
            try:
                if how == "stream":
                    return await self._send_stream(name, agent, said, key)
                return await self._send_unary(name, agent, said, key, block=how == "block")
            except _Again as again:
                await asyncio.sleep(again.seconds)

    async def _send_unary(
        self, name: str, agent: str, said: dict[str, Any], key: str, *, block: bool
    ) -> str:
        body = {"message": said, "configuration": {"returnImmediately": not block}}
        try:
            answer = await self._post(name, agent, "message:send", body, key=key)
        except httpx.HTTPError as fault:
            self.tell(what="unanswered", key=key, why=repr(fault))
            raise _Again from fault
        if answer.status_code != 200:
            self._refused(answer, key=key)
        found = str(answer.json()["task"]["id"])
        self.tell(what="accepted", key=key, task=found)
        return found

    async def _send_stream(self, name: str, agent: str, said: dict[str, Any], key: str) -> str:
        task, last = "", 0
        try:
            request = self._open(name, agent, "message:stream", {"message": said}, key=key)
            async with request as (answer, stream):
                if answer.status_code != 200:
                    await answer.aread()
                    self._refused(answer, key=key)
                async for frame in self._frames(answer, stream, name, how="send", after=None):
                    last = frame.number
                    if not task:
                        task = frame.task
                        self.tell(what="accepted", key=key, task=task)
        except httpx.HTTPError as fault:
            if not task:
                self.tell(what="unanswered", key=key, why=repr(fault))
        if not task:
            raise _Again
        if not settled(await self.get(agent, task)):
            await self.follow(agent, task, after=last)
        return task

    async def follow(
        self,
        agent: str,
        task: str,
        *,
        after: int | None = None,
        cut: Callable[[int], bool] | None = None,
    ) -> None:
        """Read the task's stream to the end, resuming as often as it takes, each time on any process.

        `cut(number)`, asked before each frame, says whether to break the connection there.
        """
        while True:
            read = await self._follow_once(agent, task, after, cut)
            if read.last:
                after = max(after or 0, read.last)
            if read.ended and settled(await self.get(agent, task)):
                return

    async def glance(self, agent: str, task: str) -> bool:
        """Subscribe, take the Task as it is, and leave with the next event. Was that the end of it?"""
        shown: list[int] = []

        def second(number: int) -> bool:
            shown.append(number)
            return len(shown) > 1

        read = await self._follow_once(agent, task, None, cut=second)
        return read.ended

    async def _follow_once(
        self, agent: str, task: str, after: int | None, cut: Callable[[int], bool] | None
    ) -> _Read:
        name, read = self._web(), _Read()
        headers = {} if after is None else {"Last-Event-ID": str(after)}
        try:
            request = self._open(name, agent, f"tasks/{task}:subscribe", {}, headers=headers)
            async with request as (answer, stream):
                if answer.status_code != 200:
                    await answer.aread()
                    self._failed(answer, "subscribe")
                    await asyncio.sleep(_seconds(answer))
                    read.ended = True
                    return read
                frames = self._frames(answer, stream, name, how="subscribe", after=after, cut=cut)
                async for frame in frames:
                    read.last = frame.number
                    if frame.waits:  # the stream stays open, but it is our turn now
                        break
            read.ended = True
        except _Cut:
            pass
        except httpx.HTTPError:
            await asyncio.sleep(0.1)
        return read

    async def replay(self, agent: str, task: str) -> None:
        """Read the whole log of the task, as far as it goes."""
        name = self._web()
        try:
            request = self._open(
                name, agent, f"tasks/{task}:subscribe", {}, headers={"Last-Event-ID": "0"}
            )
            async with request as (answer, stream):
                if answer.status_code != 200:
                    await answer.aread()
                    self._failed(answer, "subscribe")
                    return
                async for _ in self._frames(answer, stream, name, how="subscribe", after=0):
                    pass
        except httpx.HTTPError:
            return

    async def get(self, agent: str, task: str) -> dict[str, Any]:
        """The task, asked for until there is an answer."""
        while True:
            name = self._web()
            url = f"{self.urls[name]}/agents/{agent}/tasks/{task}"
            try:
                answer = await self._http.get(
                    url, headers={"A2A-Version": "1.0"}, timeout=self.patience
                )
            except httpx.HTTPError:
                await asyncio.sleep(0.1)
                continue
            if answer.status_code == 200:
                view: dict[str, Any] = answer.json()
                self.tell(what="got", task=task, view=view)
                return view
            self._failed(answer, "get")
            await asyncio.sleep(_seconds(answer))

    async def get_old(self, agent: str, task: str, dialect: str) -> None:
        """Have an older dialect say the artifacts of the task; asked for until there is an answer."""
        call = {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": task}}
        while True:
            url = f"{self.urls[self._web()]}/agents/{agent}/a2a/{dialect}/"
            try:
                answer = await self._http.post(url, json=call, timeout=self.patience)
            except httpx.HTTPError:
                await asyncio.sleep(0.1)
                continue
            if answer.status_code == 200 and "result" in answer.json():
                self.tell(what="read", task=task, dialect=dialect, view=answer.json()["result"])
                return
            self._failed(answer, "get")
            await asyncio.sleep(_seconds(answer))

    async def until_settled(self, agent: str, task: str) -> dict[str, Any]:
        """Ask until the task has ended or waits for its client."""
        while not settled(view := await self.get(agent, task)):
            await asyncio.sleep(0.25)
        return view

    async def cancel(self, agent: str, task: str) -> None:
        """Cancel the task; asked for until there is an answer."""
        while True:
            name = self._web()
            self.tell(what="cancelling", task=task)
            try:
                answer = await self._post(name, agent, f"tasks/{task}:cancel", {})
            except httpx.HTTPError:
                await asyncio.sleep(0.1)
                continue
            if (
                answer.status_code == 200
                and answer.json()["status"]["state"] == "TASK_STATE_CANCELED"
            ):
                self.tell(what="cancelled", task=task)
                return
            if answer.status_code in {400, 409}:
                self.tell(what="not-cancelled", task=task, code=answer.json())
                return
            self._failed(answer, "cancel")
            await asyncio.sleep(_seconds(answer))

    # --- the wire -------------------------------------------------------------------------

    def _web(self) -> str:
        return self.rng.choice(sorted(self.urls))

    async def _post(
        self, name: str, agent: str, path: str, body: dict[str, Any], *, key: str = ""
    ) -> httpx.Response:
        url = f"{self.urls[name]}/agents/{agent}/{path}"
        return await self._http.post(url, json=body, headers=_headers(key), timeout=self.patience)

    @asynccontextmanager
    async def _open(
        self,
        name: str,
        agent: str,
        path: str,
        body: dict[str, Any],
        *,
        key: str = "",
        headers: dict[str, str] | None = None,
    ) -> AsyncIterator[tuple[httpx.Response, str]]:
        url = f"{self.urls[name]}/agents/{agent}/{path}"
        sent = {**_headers(key), **(headers or {})}
        async with self._http.stream("POST", url, json=body, headers=sent) as answer:
            yield answer, uuid.UUID(int=self.rng.getrandbits(128)).hex

    async def _frames(
        self,
        answer: httpx.Response,
        stream: str,
        name: str,
        *,
        how: str,
        after: int | None,
        cut: Callable[[int], bool] | None = None,
    ) -> AsyncIterator[_Frame]:
        """The stream's frames as they come, each told to the history. Raises httpx.HTTPError when it breaks."""
        task: str | None = None
        number, ended = 0, "cut"
        self.tell(what="opened", stream=stream, task=None, after=after, how=how, process=name)
        try:
            async for line in answer.aiter_lines():
                field, _, value = line.partition(": ")
                if field == "" and value.startswith("events before"):
                    self.tell(what="notice", stream=stream, before=int(value.split()[2]))
                elif field == "id":
                    number = int(value.partition("-")[0])
                    if cut and cut(number):
                        raise _Cut
                elif field == "data":
                    kind, body = _item(json.loads(value))
                    task = str(body.get("taskId") or body.get("id"))
                    self.tell(
                        what="frame", stream=stream, task=task, id=number, kind=kind, body=body
                    )
                    yield _Frame(task, number, body)
            ended = "end"
        finally:
            self.tell(what="closed", stream=stream, how=ended)

    def _refused(self, answer: httpx.Response, **about: Any) -> None:
        self.tell(what="refused", status=answer.status_code, **_told(answer), **about)
        if answer.status_code == 503 or answer.status_code >= 500:
            raise _Again(_seconds(answer))
        raise Gone(f"refused: {answer.status_code} {answer.text[:500]}")

    def _failed(self, answer: httpx.Response, operation: str) -> None:
        self.tell(
            what="failed-request",
            operation=operation,
            status=answer.status_code,
            **_told(answer),
        )


class _Again(Exception):
    """Try again after so many seconds."""

    def __init__(self, seconds: float = 0.2) -> None:
        super().__init__()
        self.seconds = seconds


class _Cut(Exception):
    """The client has torn the connection, in the middle of a frame."""


class _Read:
    """How far a stream came, and whether the server ended it."""

    def __init__(self) -> None:
        self.last, self.ended = 0, False


class _Frame:
    def __init__(self, task: str, number: int, body: dict[str, Any]) -> None:
        self.task, self.number = task, number
        self.waits = body.get("status", {}).get("state") in WAITS


def _headers(key: str) -> dict[str, str]:
    return {"A2A-Version": "1.0", **({"Idempotency-Key": key} if key else {})}


def _item(said: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    names: Sequence[tuple[str, str]] = (
        ("task", "task"),
        ("statusUpdate", "status"),
        ("artifactUpdate", "artifact"),
        ("message", "message"),
    )
    for member, kind in names:
        if member in said:
            return kind, said[member]
    return "error", said


def _told(answer: httpx.Response) -> dict[str, Any]:
    try:
        code: Any = answer.json()["error"]
    except (ValueError, KeyError, TypeError):
        code = answer.text[:300]
    return {"code": code, "retry_after": answer.headers.get("retry-after")}


def _seconds(answer: httpx.Response) -> float:
    told = answer.headers.get("retry-after", "")
    return float(told) if told.isdecimal() else 0.2
