"""Every binding in every version, for callers with a key and with a token: the story of the journeys, with all cases."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from a2a_tasks.access.api_keys import issue, revoke
from tests.journeys.callers import (
    AUDIENCE,
    Holding,
    Way,
    closed_to_strangers,
    ends,
    forged,
    has_webhooks,
    keeps_out,
    refuses,
    talks,
)
from tests.journeys.fixtures import Ask
from tests.journeys.hosts import Host, host
from tests.journeys.sdk import BINDINGS
from tests.support.access.issuer import Issuer, issuing
from tests.support.push.inbox import inbox

ALL_BINDINGS = [*BINDINGS, "GRPC"]
VERSIONS = ["1.0", "0.3"]


@contextlib.asynccontextmanager
async def closed_host(issuer: Issuer) -> AsyncIterator[Host]:
    """A host with every binding and webhooks."""
    with contextlib.ExitStack() as running:
        made = host(closed_to_strangers(issuer), grpc=True, push=True)
        yield await asyncio.to_thread(running.enter_context, made)


async def test_callers_show_keys_and_tokens_on_every_binding(ask: Ask) -> None:
    issued = await ask(lambda: issue("journey"))
    async with issuing() as issuer, closed_host(issuer) as running, inbox() as receiver:
        token = issuer.token(aud=AUDIENCE)
        key, bearer = Holding("apiKey", issued.key), Holding("bearer", token)
        for binding in ALL_BINDINGS:
            for version in VERSIONS:
                way = Way(running, binding, version)
                for held, other in ((key, bearer), (bearer, key)):
                    await talks(way, held)
                    task = await has_webhooks(way, held, receiver.url())
                    await keeps_out(way, other, task)
                await refuses(way, None)
                await refuses(way, forged(token))
        await receiver.has(2 * 2 * len(ALL_BINDINGS) * len(VERSIONS))
        assert await ask(lambda: revoke(issued.row.prefix))
        await ends(running, issued.key)
