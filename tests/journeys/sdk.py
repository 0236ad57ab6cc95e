"""The published A2A client, one interface of a host at a time, with short words for what tests do."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import grpc
import httpx
from a2a.client import (
    A2ACardResolver,
    AuthInterceptor,
    Client,
    ClientCallInterceptor,
    ClientConfig,
    ClientFactory,
    CredentialService,
)
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)

from tests.journeys.waiting import PATIENCE, eventually

__all__ = ["BINDINGS", "Official", "last_state", "official", "said", "word"]

BINDINGS = ["JSONRPC", "HTTP+JSON"]


def channel(url: str) -> grpc.aio.Channel:
    """A channel to the URL in a card: grpcio takes an address without a scheme."""
    return grpc.aio.insecure_channel(urlsplit(url).netloc)


def word() -> str:
    """A word nobody has said before."""
    return uuid.uuid4().hex[:12]


def said(*shown: Any) -> str:
    """All texts in the parts of messages or artifacts."""
    return "".join(part.text for one in shown for part in one.parts)


def last_state(events: list[StreamResponse]) -> TaskState:
    """The state the stream told last."""
    for event in reversed(events):
        if event.HasField("status_update"):
            return event.status_update.status.state
        if event.HasField("task"):
            return event.task.status.state
    raise AssertionError(f"no state in {events}")


@dataclass(frozen=True)
class Official:
    """One interface of the default agent of one web process."""

    plain: Client
    streaming: Client

    @staticmethod
    def request(
        text: str, *, task: str = "", context: str = "", **configuration: Any
    ) -> SendMessageRequest:
        """A message of one text part."""
        message = Message(
            role=Role.ROLE_USER,
            message_id=word(),
            parts=[Part(text=text)],
            task_id=task,
            context_id=context,
        )
        asked = SendMessageConfiguration(**configuration)
        return SendMessageRequest(message=message, configuration=asked)

    async def answer(self, text: str, **more: Any) -> StreamResponse:
        """The one answer of a send that does not stream."""
        (answer,) = [e async for e in self.plain.send_message(self.request(text, **more))]
        return answer

    async def send(self, text: str, **more: Any) -> Task:
        """Send, wait, and get the task."""
        answer = await self.answer(text, **more)
        assert answer.HasField("task"), answer
        return answer.task

    async def start(self, text: str, **more: Any) -> Task:
        """Send and get the task without waiting for its end."""
        return await self.send(text, return_immediately=True, **more)

    async def stream(self, text: str, **more: Any) -> list[StreamResponse]:
        """Send, and listen to the end."""
        return [e async for e in self.streaming.send_message(self.request(text, **more))]

    def subscription(self, task: str) -> AsyncIterator[StreamResponse]:
        """The events of a running task, as they come."""
        return self.streaming.subscribe(SubscribeToTaskRequest(id=task))

    async def subscribe(self, task: str) -> list[StreamResponse]:
        """Listen to a task, to the end."""
        return [e async for e in self.subscription(task)]

    async def get(self, task: str, **more: Any) -> Task:
        """The task as it stands."""
        return await self.plain.get_task(GetTaskRequest(id=task, **more))

    async def cancel(self, task: str) -> Task:
        """Cancel the task."""
        return await self.plain.cancel_task(CancelTaskRequest(id=task))

    async def list(self, **more: Any) -> ListTasksResponse:
        """A page of tasks."""
        return await self.plain.list_tasks(ListTasksRequest(**more))

    async def until(self, task: str, state: TaskState) -> Task:
        """Poll until the task is in that state."""

        async def look() -> Task | None:
            found = await self.get(task)
            return found if found.status.state == state else None

        return await eventually(look, f"{task} becoming {TaskState.Name(state)}")


@asynccontextmanager
async def official(
    url: str, binding: str, credentials: CredentialService | None = None, version: str = "1.0"
) -> AsyncIterator[Official]:
    """The client as its card tells it to talk, over one binding in one version, with the credentials its card asks for."""
    known: list[ClientCallInterceptor] = [AuthInterceptor(credentials)] if credentials else []
    async with httpx.AsyncClient(timeout=PATIENCE, trust_env=False) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        spoken = [one for one in card.supported_interfaces if one.protocol_version == version]
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(spoken)
        clients = [
            ClientFactory(
                ClientConfig(
                    streaming=streaming,
                    httpx_client=http,
                    supported_protocol_bindings=[binding],
                    grpc_channel_factory=channel,
                )
            ).create(card, interceptors=known)
            for streaming in (False, True)
        ]
        yield Official(*clients)
