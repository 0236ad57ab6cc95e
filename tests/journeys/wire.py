"""The plainest client over HTTP+JSON: it shows the numbers of events, and what came before a connection broke."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.journeys.waiting import PATIENCE, eventually

__all__ = ["TERMINAL", "Event", "Plain", "Stream", "folded", "message", "plain"]

TERMINAL = {
    "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED",
    "TASK_STATE_CANCELED",
    "TASK_STATE_REJECTED",
}


@dataclass(frozen=True)
class Event:
    """One event of a stream: its number and what it says."""

    number: int
    said: dict[str, Any]


def message(text: str, **more: Any) -> dict[str, Any]:
    """The parameters of a send."""
    asked = {"messageId": uuid.uuid4().hex, "role": "ROLE_USER", "parts": [{"text": text}]}
    return {"message": asked, **more}


@dataclass
class Stream:
    """A stream under way; what has come stays readable when it breaks."""

    response: httpx.Response
    seen: list[Event] = field(default_factory=list)
    _number: int = 0

    def __post_init__(self) -> None:
        self._lines = self.response.aiter_lines()

    async def read(self, *, until: int | None = None) -> list[Event]:
        """Read to the end, or until the event of that number. Raises httpx.TransportError when it breaks."""
        async for line in self._lines:
            key, _, value = line.partition(": ")
            if key == "id":
                self._number = int(value)
            elif key == "data":
                self.seen.append(Event(self._number, json.loads(value)))
                if until is not None and self._number >= until:
                    break
        return self.seen

    @property
    def task_id(self) -> str:
        """The id of the Task that it began with."""
        return str(self.seen[0].said["task"]["id"])

    @property
    def last(self) -> int:
        """The number of the newest event."""
        return self.seen[-1].number


class Plain:
    """One agent on one web process."""

    def __init__(self, http: httpx.AsyncClient, url: str, agent: str) -> None:
        self._http, self._base = http, f"{url}/agents/{agent}"

    async def start(self, text: str, **configuration: Any) -> str:
        """Send without waiting; the id of the new task."""
        params = message(text, configuration={"returnImmediately": True, **configuration})
        answer = await self._http.post(f"{self._base}/message:send", json=params)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["task"]["id"])

    async def answer(self, task: str, text: str) -> None:
        """Answer the question of a task, without waiting."""
        params = message(text, configuration={"returnImmediately": True})
        params["message"]["taskId"] = task
        answer = await self._http.post(f"{self._base}/message:send", json=params)
        assert answer.status_code == 200, answer.text

    async def send(self, text: str) -> dict[str, Any]:
        """Send and wait for the task to settle."""
        answer = await self._http.post(f"{self._base}/message:send", json=message(text))
        assert answer.status_code == 200, answer.text
        task: dict[str, Any] = answer.json()["task"]
        return task

    async def get(self, task: str) -> dict[str, Any]:
        """The task as it stands."""
        answer = await self._http.get(f"{self._base}/tasks/{task}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def cancel(self, task: str) -> dict[str, Any]:
        """Cancel the task."""
        answer = await self._http.post(f"{self._base}/tasks/{task}:cancel")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def until(self, task: str, *states: str) -> dict[str, Any]:
        """Ask until the task is in one of these states."""

        async def look() -> dict[str, Any] | None:
            found = await self.get(task)
            state = found["status"]["state"]
            assert state in states or state not in TERMINAL, found
            return found if state in states else None

        return await eventually(look, f"{task} becoming {' or '.join(states)}")

    @asynccontextmanager
    async def stream(self, text: str) -> AsyncIterator[Stream]:
        """Send, and follow the answer."""
        url = f"{self._base}/message:stream"
        async with self._http.stream("POST", url, json=message(text)) as response:
            assert response.status_code == 200, await response.aread()
            yield Stream(response)

    @asynccontextmanager
    async def resume(self, task: str, after: int | None = None) -> AsyncIterator[Stream]:
        """Follow a task, after event `after` if there is one."""
        headers = {} if after is None else {"Last-Event-ID": str(after)}
        url = f"{self._base}/tasks/{task}:subscribe"
        async with self._http.stream("POST", url, headers=headers) as response:
            assert response.status_code == 200, await response.aread()
            yield Stream(response)

    async def log(self, task: str) -> list[Event]:
        """Every event of an ended task that streams show, as the host tells them afterwards."""
        async with self.resume(task, after=0) as stream:
            return await stream.read()


@asynccontextmanager
async def plain(url: str, agent: str, **headers: str) -> AsyncIterator[Plain]:
    """A client with connections of its own, and headers for every request."""
    async with httpx.AsyncClient(timeout=PATIENCE, trust_env=False, headers=headers) as http:
        yield Plain(http, url, agent)


def folded(task: dict[str, Any], events: list[Event]) -> dict[str, Any]:
    """The task after the events, by the rules of A2A 1.0 §4.2: what a client keeps that only listens."""
    status, artifacts = task["status"], {a["artifactId"]: a for a in task.get("artifacts", [])}
    for event in events:
        if "statusUpdate" in event.said:
            status = event.said["statusUpdate"]["status"]
        elif "artifactUpdate" in event.said:
            update = event.said["artifactUpdate"]
            piece = update["artifact"]
            known = artifacts.get(piece["artifactId"])
            if update.get("append") and known:
                known["parts"] = [*known["parts"], *piece["parts"]]
            else:
                artifacts[piece["artifactId"]] = dict(piece)
    kept = {key: task[key] for key in ("id", "contextId")}
    return {**kept, "status": status, "artifacts": list(artifacts.values())}
