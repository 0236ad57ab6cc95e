"""The published client reads in the card how to show who it is, and does so: an API key, or a token of an issuer."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

import pytest

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
from tests.journeys.hosts import SHARED, Host, embedded, with_grpc
from tests.support.access.issuer import issuing
from tests.support.ports import free_port
from tests.support.push.inbox import inbox

pytestmark = pytest.mark.backend("stack")


async def test_callers_show_a_key_or_a_token_and_strangers_find_nothing(
    site: Host, ask: Ask
) -> None:
    """Each binding once; the campaign has every version of each with either credential (`lab/clients`)."""
    issued, port = await ask(lambda: issue("journey")), free_port()
    async with issuing() as issuer, inbox() as receiver:
        with ExitStack() as running:
            environ = {**SHARED, **closed_to_strangers(issuer), **with_grpc(port)}
            web = await asyncio.to_thread(running.enter_context, embedded(environ))
            closed, token = Host([web], port), issuer.token(aud=AUDIENCE)
            key, bearer = Holding("apiKey", issued.key), Holding("bearer", token)
            for binding, version, held, other in (
                ("JSONRPC", "1.0", key, bearer),
                ("HTTP+JSON", "0.3", bearer, key),
                ("GRPC", "1.0", bearer, key),
            ):
                way = Way(closed, binding, version)
                await talks(way, held)
                task = await has_webhooks(way, held, receiver.url())
                await keeps_out(way, other, task)
                await refuses(way, None)
                await refuses(way, forged(token))
            await receiver.has(3 * 2)
            assert await ask(lambda: revoke(issued.row.prefix))
            await ends(closed, issued.key)
