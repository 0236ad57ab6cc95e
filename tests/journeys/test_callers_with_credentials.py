"""The published client reads in the card how to show who it is, and does so: an API key, or a token of an issuer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import httpx
import pytest
from a2a.client import ClientCallContext, CredentialService
from a2a.client.errors import A2AClientError
from a2a.types import TaskState
from a2a.utils import errors
from pytest_django.plugin import DjangoDbBlocker

from a2a_tasks.access.api_keys import issue, revoke
from a2a_tasks.store.hop import hop
from tests.access.issuer import Issuer, issuing
from tests.journeys.hosts import Host, host
from tests.journeys.sdk import BINDINGS, last_state, official, said, word
from tests.journeys.waiting import eventually

S = TaskState
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
    """A host for callers with keys, or tokens of the issuer."""
    environ = {
        "A2A_ANONYMOUS": "0",
        "A2A_JWT_ISSUER": issuer.url,
        "A2A_JWT_AUDIENCE": AUDIENCE,
    }
    with contextlib.ExitStack() as running:
        yield await asyncio.to_thread(running.enter_context, host(environ))


async def test_callers_show_keys_and_tokens_on_every_binding(
    django_db_blocker: DjangoDbBlocker,
) -> None:
    with django_db_blocker.unblock():
        issued = await hop(issue, "journey")
    async with issuing() as issuer, closed_host(issuer) as running:
        token = issuer.token(aud=AUDIENCE)
        for binding in BINDINGS:
            for held in (Holding("apiKey", issued.key), Holding("bearer", token)):
                await talks(running, binding, held)
            async with official(running.here, binding) as nobody:
                with pytest.raises((A2AClientError, errors.A2AError, httpx.HTTPStatusError)):
                    await nobody.send("echo hi")
            forged = Holding("bearer", token[:-6] + "AAAAAA")
            async with official(running.here, binding, forged) as mallory:
                with pytest.raises((A2AClientError, errors.A2AError, httpx.HTTPStatusError)):
                    await mallory.send("echo hi")
        with django_db_blocker.unblock():
            assert await hop(revoke, issued.row.prefix)
        await ends(running, issued.key)


async def talks(running: Host, binding: str, held: Holding) -> None:
    """A caller sends, streams, reads its own task on another process, and nobody else does."""
    async with (
        official(running.here, binding, held) as here,
        official(running.there, binding, held) as there,
    ):
        text = word()
        task = await here.send(f"echo {text}")
        assert said(*task.artifacts) == text
        assert await there.get(task.id) == task
        assert last_state(await here.stream("chunks 3")) == S.TASK_STATE_COMPLETED


async def ends(running: Host, key: str) -> None:
    """A revoked key opens nothing any more, on any process, within seconds."""
    for url in {running.here, running.there}:
        async with httpx.AsyncClient(trust_env=False) as http:

            async def look(http: httpx.AsyncClient = http, url: str = url) -> bool:
                asked = f"{url}/agents/demo/tasks"
                answer = await http.get(asked, headers={"X-API-Key": key, "A2A-Version": "1.0"})
                return answer.status_code == 401

            await eventually(look, "the key ending")
