"""`python sdk_02.py CARD_URL VERSION ENDPOINT [AT]` where a2a-sdk 0.2.x is installed: what the published client can do here.

The conversation of `sdk_03.py`, as far as this client goes: it speaks JSON-RPC only and cannot subscribe again.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import httpx

newer: Any = import_module("sdk_03")
sdk, types = newer.sdk, newer.types


class Refused(Exception):
    """An error that was answered, with the attribute that later clients have."""

    def __init__(self, error: Any) -> None:
        super().__init__(str(error))
        self.error = error


def result(answer: Any) -> Any:
    """The result of an answer. Raises Refused."""
    if hasattr(answer.root, "error"):
        raise Refused(answer.root.error)
    return answer.root.result


@dataclass(frozen=True)
class Older:
    """The client of 0.2 with the methods of the client of 0.3."""

    client: Any
    card: Any
    streaming: bool

    async def send_message(self, message: Any, *, configuration: Any = None) -> AsyncIterator[Any]:
        """The one answer, or pairs of the task as it was told and the update."""
        configuration = configuration or types.MessageSendConfiguration(accepted_output_modes=[])
        params = types.MessageSendParams(message=message, configuration=configuration)
        if not self.streaming:
            request = types.SendMessageRequest(id=newer.word(), params=params)
            yield result(await self.client.send_message(request))
            return
        stream = types.SendStreamingMessageRequest(id=newer.word(), params=params)
        task: Any = None
        async for answer in self.client.send_message_streaming(stream):
            event = result(answer)
            if event.kind == "message":
                yield event
                continue
            task = event if event.kind == "task" else task
            if event.kind == "status-update":
                task = task.model_copy(update={"status": event.status})
            yield task, None if event.kind == "task" else event

    async def get_task(self, params: Any) -> Any:
        """The task as it stands."""
        request = types.GetTaskRequest(id=newer.word(), params=params)
        return result(await self.client.get_task(request))

    async def cancel_task(self, params: Any) -> Any:
        """The task, cancelled."""
        request = types.CancelTaskRequest(id=newer.word(), params=params)
        return result(await self.client.cancel_task(request))

    async def get_card(self) -> Any:
        """The card it has."""
        return self.card


async def connect(http: httpx.AsyncClient, place: Any, binding: str) -> Any:
    """The client as the card tells it to talk."""
    base, _, path = place.card_url.partition("/.well-known/")
    card = await sdk.A2ACardResolver(http, base, f"/.well-known/{path}").get_agent_card()
    client = sdk.A2AClient(http, agent_card=newer.moved(card, place.at) if place.at else card)
    sides = [Older(client, card, streaming) for streaming in (False, True)]
    return newer.Peer(place, card, binding, *sides)


if __name__ == "__main__":
    newer.failures.A2AClientJSONRPCError = Refused
    newer.connect = connect
    newer.url_of = lambda card, binding: card.url
    asyncio.run(newer.converse(newer.Place(*sys.argv[1:])))
