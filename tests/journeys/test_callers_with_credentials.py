"""The published client reads in the card how to show who it is, and does so: an API key, or a token of an issuer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
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
from pytest_django.plugin import DjangoDbBlocker

from a2a_tasks.access.api_keys import issue, revoke
from a2a_tasks.store.hop import hop
from tests.access.issuer import Issuer, issuing
from tests.backend import SQLITE
from tests.journeys.hosts import Host, host
from tests.journeys.sdk import BINDINGS, Official, last_state, official, said, word
from tests.journeys.waiting import eventually
from tests.push.inbox import inbox

S = TaskState
ALL_BINDINGS = [*BINDINGS, "GRPC"]
VERSIONS = ["1.0", "0.3"]
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


@contextlib.asynccontextmanager
async def closed_host(issuer: Issuer) -> AsyncIterator[Host]:
    """A host with every binding, for callers with keys, or tokens of the issuer."""
    environ = {
        "A2A_ANONYMOUS": "0",
        "A2A_JWT_ISSUER": issuer.url,
        "A2A_JWT_AUDIENCE": AUDIENCE,
        "A2A_WEBHOOK_ALLOW_PRIVATE": "1",
    }
    with contextlib.ExitStack() as running:
        yield await asyncio.to_thread(running.enter_context, host(environ, grpc=True))


async def test_callers_show_keys_and_tokens_on_every_binding(
    django_db_blocker: DjangoDbBlocker, backend: str
) -> None:
    with django_db_blocker.unblock():
        issued = await hop(issue, "journey")
    async with issuing() as issuer, closed_host(issuer) as running, inbox() as receiver:
        token = issuer.token(aud=AUDIENCE)
        key, bearer = Holding("apiKey", issued.key), Holding("bearer", token)
        forged = Holding("bearer", token[:-6] + "AAAAAA")
        for binding in ALL_BINDINGS:
            for version in VERSIONS:
                way = Way(running, binding, version)
                for held, other in ((key, bearer), (bearer, key)):
                    await talks(way, held)
                    task = await has_webhooks(way, held, receiver.url())
                    await keeps_out(way, other, task)
                await refuses(way, None)
                await refuses(way, forged)
        if backend == SQLITE:  # on the stack pushers send them
            await receiver.has(2 * 2 * len(ALL_BINDINGS) * len(VERSIONS))
        with django_db_blocker.unblock():
            assert await hop(revoke, issued.row.prefix)
        await ends(running, issued.key)


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
        slow = await here.start("slow 0.3")
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
