"""Hundreds of hostile calls over gRPC to a server in this process: judged as hostile requests are."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from a2a_tasks.store.db import run_in_thread
from lab.hostile.judged import judged
from lab.hostile.rpc_bending import Call, hostile_call
from lab.hostile.rpc_judge import leaks_of, refused, wrong_call
from lab.hostile.rpc_wire import Said, called, channel_to
from lab.hostile.test_credentials import bearer, key
from lab.hostile.test_hostile import made
from lab.matrix.outcomes import rows
from tests.support.access.fixtures import issuer
from tests.support.access.issuer import Issuer
from tests.support.bindings.client import Client
from tests.support.bindings.rpc_peer import address
from tests.support.grpc_server.frames import FRAMES, reply

__all__ = ["issuer"]
pytestmark = pytest.mark.usefixtures("host")
IN_ONE = 250
FIRST = [0, IN_ONE, pytest.param(2 * IN_ONE, marks=pytest.mark.backend("sqlite"))]
LIST = "/lf.a2a.v1.A2AService/ListTasks"


Ask = Callable[[Call], Awaitable[Said]]


async def port() -> int:
    """Of the server of the test."""
    return int((await address()).rpartition(":")[2])


@pytest.fixture
async def asking(host: None) -> AsyncIterator[Ask]:
    """How to ask that server."""
    with channel_to(await port()) as wire:
        yield lambda call: asyncio.to_thread(called, wire, call)


async def no_harm(numbers: range, ask: Ask, client: Client, settings: Any) -> int:
    """Fail with what is wrong with the answers to the calls of these numbers; how many there were."""
    settings.A2A_POLL_SECONDS = 60.0
    settings.A2A_WEBHOOK_ALLOW_PRIVATE = True
    found = await judged(
        numbers, await made(client), make=hostile_call, ask=ask, wrong=wrong_call, refused=refused
    )
    assert not found, f"{len(found)} problems:\n" + "\n".join(found[:20])
    return len(numbers)


@pytest.mark.parametrize("first", FIRST)
async def test_is_answered_as_it_should_be_and_changes_nothing_if_it_is_refused(
    first: int, asking: Ask, client: Client, settings: Any, record_property: Any
) -> None:
    done = await no_harm(range(first, first + IN_ONE), asking, client, settings)
    record_property("hostile", done)


async def test_bytes_that_are_no_call_tell_nothing_and_leave_a_server_that_works(
    asking: Ask,
) -> None:
    at, before = await port(), await run_in_thread(rows)
    found = await asyncio.gather(*(asyncio.to_thread(reply, at, data) for data in FRAMES))
    leaks = {
        data[:80]: words
        for data, said in zip(FRAMES, found, strict=True)
        if (words := leaks_of(said))
    }
    assert not leaks
    said = await asking(Call(LIST, (), (b"",)))
    assert said.code == "OK"
    assert await run_in_thread(rows) == before


@pytest.mark.parametrize(("header", "noise"), [("authorization", bearer), ("x-api-key", key)])
async def test_made_up_credentials_in_metadata_open_nothing(
    header: str, noise: Any, asking: Ask, issuer: Issuer, settings: Any
) -> None:
    settings.A2A_ANONYMOUS = "0"
    good = issuer.token()
    said = await asking(Call(LIST, (("authorization", f"Bearer {good}"),), (b"",)))
    assert said.code == "OK"
    for number in range(200):
        text = noise(random.Random(number), good)
        if not (text.isascii() and text.isprintable()):
            continue  # no metadata: see the frames
        call = Call(LIST, ((header, text),), (b"",))
        said = await asking(call)
        assert said.code in {"UNAUTHENTICATED", "RESOURCE_EXHAUSTED"}, (text, said)
        assert list(wrong_call(call, said)) == []
