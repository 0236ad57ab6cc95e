"""A host in one event loop, as long as a block lasts: its runner, its hub, what a client would send to it, and how tasks stand."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from a2a_project.operations import TABLE
from a2a_tasks.agents import Agent
from a2a_tasks.agents.host_extensions import TOOL_EVENTS
from a2a_tasks.caller import Caller, OwnerScope
from a2a_tasks.conf import conf
from a2a_tasks.execution import dispatch
from a2a_tasks.execution.runner import Runner
from a2a_tasks.models import Event, Run, Task
from a2a_tasks.operations.call_context import CallContext
from a2a_tasks.operations.capabilities import require_capability
from a2a_tasks.protocol import values
from a2a_tasks.protocol.lifecycle import EventKind, LogEvent
from a2a_tasks.protocol.requests import (
    CancelTaskRequest,
    GetTaskRequest,
    SendMessageRequest,
    SubscribeToTaskRequest,
)
from a2a_tasks.protocol.values import Message, Part, Role
from a2a_tasks.store import runs
from a2a_tasks.store.accept import accept
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.streaming import event_buffer
from a2a_tasks.streaming.stream import EventStream
from tests.support.store.world import expire, new

__all__ = [
    "ALICE",
    "Client",
    "carried",
    "client_state",
    "due",
    "ended",
    "hosting",
    "listened",
    "look_later",
    "message_of",
    "not_carried",
    "rows",
    "runner",
    "status",
    "status_is",
    "take_away",
    "tools_told",
]

ALICE = Caller(principal="user:alice")


class Client:
    """Alice, as the operations see her."""

    def __init__(self, agent: Agent, caller: Caller = ALICE) -> None:
        self.agent, self.caller = agent, caller
        #: Those of every request.
        self.circumstances: dict[str, Any] = {}

    def call(self, **circumstances: Any) -> CallContext:
        """The circumstances of a request."""
        about = {**self.circumstances, **circumstances}
        return CallContext(agent=self.agent, caller=self.caller, **about)

    def request(self, text: str, **about: Any) -> SendMessageRequest:
        """A message to the agent."""
        ids = {name: about.pop(name) for name in ("task_id", "context_id") if name in about}
        message = Message(
            message_id=uuid.uuid4().hex, role=Role.USER, parts=(Part(text=text),), **ids
        )
        return SendMessageRequest(message=message, **about)

    async def send(self, text: str = "hello", **about: Any) -> values.Task:
        """The task once it has settled."""
        answer = await TABLE["SendMessage"](self.request(text, **about), self.call())
        assert isinstance(answer, values.Task)
        return answer

    async def begin(self, text: str = "hello", **about: Any) -> values.Task:
        """The task at once."""
        return await self.send(text, return_immediately=True, **about)

    async def stream(self, text: str = "hello", **about: Any) -> EventStream:
        """A stream of the task, as a binding asks for it."""
        require_capability(self.agent, "streaming")
        opened = await TABLE["SendStreamingMessage"](self.request(text, **about), self.call())
        assert isinstance(opened, EventStream)
        return opened

    async def subscribe(self, task: str, **circumstances: Any) -> EventStream:
        """A stream of a task that is there."""
        require_capability(self.agent, "streaming")
        opened = await TABLE["SubscribeToTask"](
            SubscribeToTaskRequest(id=task), self.call(**circumstances)
        )
        assert isinstance(opened, EventStream)
        return opened

    async def get(self, task: str) -> values.Task:
        """The task as it stands."""
        found = await TABLE["GetTask"](GetTaskRequest(id=task), self.call())
        assert isinstance(found, values.Task)
        return found

    async def cancel(self, task: str) -> values.Task:
        """The task, cancelled."""
        found = await TABLE["CancelTask"](CancelTaskRequest(id=task), self.call())
        assert isinstance(found, values.Task)
        return found

    async def states(self, task: str) -> str:
        """The state's word: what tests wait for."""
        return (await self.get(task)).status.state.word


async def listened(stream: EventStream) -> list[LogEvent]:
    """All events of a stream, to its end."""
    try:
        return [event async for batch in stream.batches(0.5) for event in batch or ()]
    finally:
        await stream.close()


def carried(client: Client, task: str) -> Run:
    """The newest run of a task. For a thread with a connection."""
    return Run.objects.filter(task__public_id=task, task__agent=client.agent.slug).latest("pk")


@asynccontextmanager
async def hosting() -> AsyncIterator[None]:
    """Let this loop's runner and hub live as long as the block; nothing of them is left behind."""
    try:
        yield
    finally:
        loop = asyncio.get_running_loop()
        if (left := dispatch._runners.pop(loop, None)) is not None:
            await ended(left)
        if (feeds := event_buffer._hubs.pop(loop, None)) is not None:
            await feeds.close()


@asynccontextmanager
async def runner(*queues: str, slots: int | None = None) -> AsyncIterator[Runner]:
    """A runner of its own, as a worker process has one."""
    made = Runner(list(queues) or None, slots=slots)
    made.start()
    try:
        yield made
    finally:
        await ended(made)


_rescue = Runner._rescue_for_ever


def look_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runners look for lost runs first after POLL_SECONDS, as in hosts that have looked just now."""
    monkeypatch.setattr(Runner, "_rescue_for_ever", _rescue_later)


async def _rescue_later(made: Runner) -> None:
    await asyncio.sleep(float(conf.POLL_SECONDS))
    await _rescue(made)


async def ended(made: Runner) -> None:
    """Stop a runner, which waits for nobody; its heartbeats are in no later test."""
    await made.drain(0)
    if made._leases._heart.is_alive():
        await asyncio.to_thread(made._leases._heart.join, 10)


def rows(task: str) -> Task:
    """The row of a task. For a thread with a connection."""
    return Task.objects.get(public_id=task)


def tools_told(task: str) -> list[Any]:
    """What the log of a task says about tools. For a thread with a connection."""
    events = Event.objects.filter(task__public_id=task, kind=EventKind.TOOL).order_by("number")
    bodies = events.values_list("body", flat=True)
    messages = [json.loads(body)["status"]["message"] for body in bodies]
    assert all(message["extensions"] == [TOOL_EVENTS.uri] for message in messages)
    return [message["parts"][0]["data"] for message in messages]


async def status(task: str = "task-1") -> str:
    """How a task stands, whoever's it is."""
    return (
        str((await run_in_thread(Task.objects.get, public_id=task)).state)
        .rpartition("_")[2]
        .lower()
    )


async def due(slug: str, task: str = "task-1", **about: Any) -> Any:
    """A task whose run waits for a runner."""
    return await run_in_thread(accept, new(task, scope=OwnerScope("", "user:alice", slug), **about))


async def message_of(client: Client, task: str) -> str:
    """The message in the status."""
    stored = (await client.get(task)).status.message
    return bytes(stored).decode() if stored else ""


async def status_is(*expected: str, task: str = "task-1") -> bool:
    """Does it stand like one of these?"""
    return await status(task) in expected


async def not_carried() -> bool:
    """Do the runners of all loops have nothing in their hands?"""
    return not any(made._active for made in dispatch._runners.values())


async def client_state(client: Client, task: str, word: str) -> bool:
    """Does the client read this state?"""
    return await client.states(task) == word


def take_away(task: str | None = None) -> None:
    """Let the lease of the only run, or of a task's newest one, end and be seen by a rescuer."""
    run = Run.objects.filter(task__public_id=task).latest("pk") if task else Run.objects.get()
    for _ in range(100):
        expire(run.pk)
        if runs.reclaim_expired(max_attempts=3):
            return
    raise AssertionError("the run could not be taken away")
