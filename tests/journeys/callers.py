"""Callers who show who they are, as the published client does: an API key, or a token of an issuer."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

import httpx
import pytest
from a2a.client import ClientCallContext, CredentialService
from a2a.client.errors import A2AClientError
from a2a.types import (
    GetTaskPushNotificationConfigRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils import errors

from tests.journeys.hosts import Host
from tests.journeys.sdk import Official, last_state, official, said, word
from tests.journeys.waiting import eventually
from tests.support.access.issuer import Issuer

__all__ = [
    "AUDIENCE",
    "Holding",
    "Way",
    "closed_to_strangers",
    "ends",
    "forged",
    "has_webhooks",
    "keeps_out",
    "refuses",
    "talks",
]

S = TaskState
KEPT_OUT = (A2AClientError, errors.A2AError, httpx.HTTPStatusError)
AUDIENCE = "api://a2a"


class Holding(CredentialService):
    """Holds the credential of one scheme."""

    def __init__(self, scheme: str, credential: str) -> None:
        self._held = {scheme: credential}

    async def get_credentials(
        self, security_scheme_name: str, context: ClientCallContext | None
    ) -> str | None:
        """The credential, if it is of this scheme."""
        return self._held.get(security_scheme_name)


def closed_to_strangers(issuer: Issuer) -> dict[str, str]:
    """Settings of a host for callers with keys, or tokens of the issuer."""
    return {
        "A2A_ANONYMOUS": "0",
        "A2A_JWT_ISSUER": issuer.url,
        "A2A_JWT_AUDIENCE": AUDIENCE,
        "A2A_WEBHOOK_ALLOW_PRIVATE": "1",
    }


def forged(token: str) -> Holding:
    """The token with another signature."""
    return Holding("bearer", token[:-6] + "AAAAAA")


@dataclass(frozen=True)
class Way:
    """How the client talks to a host."""

    running: Host
    binding: str
    version: str

    def here(self, held: Holding | None) -> AbstractAsyncContextManager[Official]:
        """The client, at the first web process."""
        return official(self.running.here, self.binding, held, self.version)

    def there(self, held: Holding | None) -> AbstractAsyncContextManager[Official]:
        """The client, at another one, if there is one."""
        return official(self.running.there, self.binding, held, self.version)


async def talks(way: Way, held: Holding) -> None:
    """A caller sends, streams, follows, and reads its own task on another process."""
    async with way.here(held) as here, way.there(held) as there:
        text = word()
        task = await here.send(f"echo {text}")
        assert said(*task.artifacts) == text
        assert await there.get(task.id) == task
        assert last_state(await here.stream("chunks 3")) == S.TASK_STATE_COMPLETED
        slow = await here.start("slow 1.5")
        assert last_state(await there.subscribe(slow.id)) == S.TASK_STATE_COMPLETED
        asked = await here.send("ask who")
        assert (await there.cancel(asked.id)).status.state == S.TASK_STATE_CANCELED


async def has_webhooks(way: Way, held: Holding, url: str) -> str:
    """A caller has a webhook told of a task, and finds it. Returns the id of the task, which waits for the caller."""
    async with way.here(held) as here, way.there(held) as there:
        task = await here.send("ask who")
        wanted = TaskPushNotificationConfig(task_id=task.id, id="mine", url=url)
        made = await here.plain.create_task_push_notification_config(wanted)
        assert (made.task_id, made.url) == (task.id, url)
        asked = GetTaskPushNotificationConfigRequest(task_id=task.id, id=made.id)
        assert (await there.plain.get_task_push_notification_config(asked)).url == url
        await here.send("Ada", task=task.id, context=task.context_id)
        another = await here.send("ask who")
        await here.plain.create_task_push_notification_config(
            TaskPushNotificationConfig(task_id=another.id, id="mine", url=url)
        )
        return another.id


async def keeps_out(way: Way, held: Holding, task: str) -> None:
    """To somebody else neither task nor webhook exist."""
    async with way.here(held) as stranger:
        client = stranger.plain
        with pytest.raises(KEPT_OUT):
            await stranger.get(task)
        with pytest.raises(KEPT_OUT):
            await stranger.cancel(task)
        with pytest.raises(KEPT_OUT):
            await stranger.send("Eve", task=task)
        with pytest.raises(KEPT_OUT):
            await stranger.subscribe(task)
        asked = GetTaskPushNotificationConfigRequest(task_id=task, id="mine")
        with pytest.raises(KEPT_OUT):
            await client.get_task_push_notification_config(asked)


async def refuses(way: Way, held: Holding | None) -> None:
    """Whoever shows nothing, or something forged, is not let in."""
    async with way.here(held) as nobody:
        with pytest.raises(KEPT_OUT):
            await nobody.send("echo hi")
        with pytest.raises(KEPT_OUT):
            await nobody.stream("echo hi")


async def ends(running: Host, key: str) -> None:
    """A revoked key opens nothing any more, on any process, within seconds."""
    for url in {running.here, running.there}:
        async with httpx.AsyncClient(trust_env=False) as http:

            async def look(http: httpx.AsyncClient = http, url: str = url) -> bool:
                asked = f"{url}/agents/demo/tasks"
                answer = await http.get(asked, headers={"X-API-Key": key, "A2A-Version": "1.0"})
                return answer.status_code == 401

            await eventually(look, "the key ending")
