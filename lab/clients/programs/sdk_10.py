"""`python sdk_10.py CARD_URL VERSION ENDPOINT` where a2a-sdk 1.x is installed: see `talk.py`."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import grpc
import httpx
from a2a.client import A2ACardResolver, ClientConfig, create_client
from a2a.types import CancelTaskRequest, Message, Part, Role, SendMessageRequest, TaskState
from talk import Heard, main, word


def channel(url: str) -> grpc.aio.Channel:
    """A channel to the URL in a card: grpcio takes an address without a scheme."""
    place = urlsplit(url)
    if place.scheme == "https":
        return grpc.aio.secure_channel(place.netloc, grpc.ssl_channel_credentials())
    return grpc.aio.insecure_channel(place.netloc)


class Peer:
    """The client that `create_client` makes of the card."""

    def __init__(self, address: str, binding: str) -> None:
        self.address, self.binding = address, binding

    async def client(self, **config: Any) -> Any:
        """A client."""
        if self.binding == "GRPC":
            config["grpc_channel_factory"] = channel
        made = ClientConfig(supported_protocol_bindings=[self.binding], **config)
        return await create_client(self.address, client_config=made)

    async def interface(self) -> tuple[str, str]:
        """What the card says of the binding, first of all versions."""
        async with httpx.AsyncClient() as http:
            card = await A2ACardResolver(http, self.address).get_agent_card()
        named = card.supported_interfaces
        found = next(one for one in named if one.protocol_binding == self.binding)
        return found.protocol_version, found.url

    @staticmethod
    def request(text: str, task: str = "") -> SendMessageRequest:
        """A message of one text."""
        parts = [Part(text=text)]
        message = Message(role=Role.ROLE_USER, message_id=word(), parts=parts, task_id=task)
        return SendMessageRequest(message=message)

    async def ask(self, text: str, after: Heard | None = None, *, stream: bool = False) -> Heard:
        """Say it, and hear the answer."""
        said: list[Any] = []
        task, pieces = "", 0
        async with await self.client(streaming=stream) as client:
            async for event in client.send_message(self.request(text, after.more if after else "")):
                if event.HasField("task"):
                    task = event.task.id
                    said += [part for each in event.task.artifacts for part in each.parts]
                    said += [] if said else event.task.status.message.parts
                elif event.HasField("artifact_update"):
                    pieces += 1
                    said += event.artifact_update.artifact.parts
        files = [part.raw or part.url for part in said if part.raw or part.url]
        return Heard("".join(part.text for part in said), pieces, files, task)

    async def cancel(self, text: str) -> str:
        """Begin a task, and cancel it."""
        request = self.request(text)
        request.configuration.return_immediately = True
        async with await self.client(streaming=False) as client:
            (answer,) = [event async for event in client.send_message(request)]
            task = await client.cancel_task(CancelTaskRequest(id=answer.task.id))
        return TaskState.Name(task.status.state).removeprefix("TASK_STATE_").lower()


if __name__ == "__main__":
    main(Peer)
