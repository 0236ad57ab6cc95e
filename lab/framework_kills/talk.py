"""The client of a conversation: it sends each message until the host has it, and follows each task in two ways, whose streams it tears."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
import uuid
from collections.abc import Callable
from typing import Any, Self

import httpx

from lab.framework_kills.cases import Case
from lab.framework_kills.evidence import Final, Frame
from tests.journeys.wire import TERMINAL, Plain, Stream, message
from tests.support.execution.waiting import until

__all__ = ["JOINING", "RESUMING", "TOOLS", "USAGE", "Talk"]

USAGE = "urn:a2a-host:extensions:usage:1"
TOOLS = "urn:a2a-host:extensions:tool-events:1"
#: The ways to follow a task: after the last event that was seen, and from the task as it stands.
RESUMING, JOINING = "resuming", "joining"
#: Seconds that the client goes on for, with one message.
PATIENCE = 80.0
#: Seconds between two tries, and between two looks.
PAUSE = 0.05
WAITS = "TASK_STATE_INPUT_REQUIRED"
REFUSED = 400


class Talk:
    """A conversation. A context manager."""

    def __init__(self, url: str, rng: random.Random, case: Case) -> None:
        headers = {"A2A-Version": "1.0", "A2A-Extensions": f"{USAGE}, {TOOLS}"}
        self._http = httpx.AsyncClient(timeout=20, trust_env=False, headers=headers)
        self._plain = Plain(self._http, url, "chat")
        self._base = f"{url}/agents/chat"
        self._rng, self._case = rng, case
        self._context = ""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def carry(self, number: int, begin_turn: Callable[[int], None]) -> Final:
        """Have a task carried out to its end; `begin_turn` is called before each message."""
        begin_turn(0)
        about = {"contextId": self._context} if self._context else {}
        task = await self._send(self._case.prompt(number), **about)
        self._context = str(task["contextId"])
        seen: dict[str, list[Frame]] = {RESUMING: [], JOINING: []}
        following = [
            asyncio.ensure_future(self._follow(task["id"], way, frames))
            for way, frames in seen.items()
        ]
        try:
            ended = await self._answer(task["id"], number, begin_turn)
            await asyncio.wait_for(asyncio.gather(*following), PATIENCE)
        finally:
            for one in following:
                one.cancel()
        log = [Frame(0, event.number, event.said) for event in await self._plain.log(task["id"])]
        return Final(number, ended, log, seen)

    async def cancel(self) -> float:
        """Have a task cancelled after the first word of its model. Returns when that was sent."""
        task = await self._send("SAY 1 WAIT 2")

        async def speaks() -> bool:
            return bool((await self._plain.get(task["id"])).get("artifacts"))

        await until(speaks)
        sent = time.time()
        await self._plain.cancel(task["id"])
        return sent

    async def _answer(
        self, task: str, number: int, begin_turn: Callable[[int], None]
    ) -> dict[str, Any]:
        """Answer the question of the task, and wait for its end."""
        answered, deadline = False, time.monotonic() + PATIENCE
        while True:
            try:
                found = await self._plain.get(task)
            except httpx.TransportError:
                found = None
            state = found["status"]["state"] if found else ""
            if found and state in TERMINAL:
                return found
            if state == WAITS and not answered:
                begin_turn(1)
                await self._send(self._case.tasks[number].answer, taskId=task)
                answered = True
            assert time.monotonic() < deadline, f"task {number} is {state or 'not to be had'}"
            await asyncio.sleep(PAUSE)

    async def _send(self, text: str, **about: str) -> dict[str, Any]:
        """Send a message until the host has it; the key tells it that it is the same."""
        params = message(text, configuration={"returnImmediately": True})
        params["message"] |= about
        key = {"Idempotency-Key": uuid.uuid4().hex}
        deadline = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(httpx.TransportError):
                answer = await self._http.post(
                    f"{self._base}/message:send", json=params, headers=key
                )
                if answer.status_code == httpx.codes.OK:
                    task: dict[str, Any] = answer.json()["task"]
                    return task
                assert answer.status_code == httpx.codes.SERVICE_UNAVAILABLE, answer.text
            assert time.monotonic() < deadline, "the message cannot be sent"
            await asyncio.sleep(PAUSE)

    async def _follow(self, task: str, way: str, frames: list[Frame]) -> None:
        """Follow a task until it has ended, with one stream after the other."""
        url, number = f"{self._base}/tasks/{task}:subscribe", 0
        while not (frames and _has_ended(frames[-1].said)):
            number += 1
            after = {"Last-Event-ID": str(frames[-1].number)} if frames else {}
            headers = after if way == RESUMING else {}
            try:
                async with self._http.stream("POST", url, headers=headers) as response:
                    if response.status_code >= REFUSED:
                        await response.aread()
                        if await self._is_over(task):
                            return
                    else:
                        await self._read(Stream(response), number, frames)
            except httpx.TransportError:
                pass
            await asyncio.sleep(PAUSE)

    async def _read(self, stream: Stream, number: int, frames: list[Frame]) -> None:
        """Read some events of a stream, then leave it."""
        most, before = self._rng.randint(1, 12), -1
        try:
            while before < len(stream.seen) < most:
                before = len(stream.seen)
                await stream.read(until=0)
        finally:
            frames += [Frame(number, one.number, one.said) for one in stream.seen]

    async def _is_over(self, task: str) -> bool:
        return str((await self._plain.get(task))["status"]["state"]) in TERMINAL


def _has_ended(said: dict[str, Any]) -> bool:
    status = (said.get("statusUpdate") or said.get("task") or {}).get("status", {})
    return status.get("state") in TERMINAL
