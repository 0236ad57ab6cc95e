"""`turn.http`: agents call other servers by a session that leads nowhere inside."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from a2a_tasks.agents import CallRefused, Turn
from a2a_tasks.agents import http as agents_http
from a2a_tasks.agents.turn import Later
from a2a_tasks.caller import Caller
from a2a_tasks.execution.agent_call import drive
from a2a_tasks.outbound import Guard, NameNotResolved, OutboundPolicy
from a2a_tasks.protocol.values import Message, Part, Role
from tests.support.agents_under_test import playing
from tests.support.outbound import vectors
from tests.support.outbound.canary import canary, watched
from tests.support.push import receivers
from tests.support.push.receivers import Farm


def make_turn() -> Turn:
    """A turn whose history nobody asks for."""

    async def nothing() -> list[Any]:
        return []

    loop = asyncio.get_running_loop()
    return Turn(
        message=Message(message_id="m-1", role=Role.USER, parts=(Part(text="go"),)),
        task_id="t-1",
        context_id="c-1",
        caller=Caller(),
        history=Later(nothing, loop),
        references=Later(nothing, loop),
        memory={},
    )


@pytest.fixture
async def farm() -> AsyncIterator[Farm]:
    async with receivers.farm() as made:
        yield made


@pytest.fixture
async def turn() -> AsyncIterator[Turn]:
    made = make_turn()
    yield made
    await made._close()


def judge(monkeypatch: pytest.MonkeyPatch, *answers: str, **policy: Any) -> None:
    """Let the guard resolve every name to these addresses, and judge by this policy."""

    async def resolve(name: str) -> tuple[str, ...]:
        if not answers:
            raise NameNotResolved(name)
        return answers

    made = Guard(OutboundPolicy.read(http=True, **policy), resolve)
    monkeypatch.setattr(agents_http, "guard", lambda: made)


class TestASession:
    async def test_reaches_what_the_settings_allow(
        self, turn: Turn, farm: Farm, settings: Any
    ) -> None:
        settings.A2A_FETCH_ALLOW_PRIVATE = True
        async with turn.http.post(farm.url("/ok"), json={"a": 1}) as answer:
            assert (answer.status, await answer.text()) == (200, "thanks")
        assert turn.http is turn.http
        assert farm.seen[0].body == b'{"a": 1}'

    async def test_gives_answers_as_they_come(self, turn: Turn, farm: Farm, settings: Any) -> None:
        settings.A2A_FETCH_ALLOW_PRIVATE = True
        async with turn.http.post(farm.url("/endless-body")) as answer:
            assert await answer.content.readexactly(100) == b"x" * 100

    @pytest.mark.parametrize("name", vectors.ALL)
    async def test_leads_nowhere_inside(self, turn: Turn, name: str) -> None:
        with canary() as bird:
            for vector in vectors.ALL[name]:
                url = vector.replace("PORT", str(bird.port))
                with (
                    watched() as heard,
                    pytest.raises((aiohttp.ClientError, ValueError, TypeError)),
                ):
                    await turn.http.get(url, timeout=aiohttp.ClientTimeout(total=5))
                assert not [event for event in heard if event[0] == "socket.connect"], url
            assert not bird.sings

    async def test_refuses_a_name_that_leads_inside(
        self, turn: Turn, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        judge(monkeypatch, "8.8.8.8", "10.0.0.1")
        with watched() as heard, pytest.raises(CallRefused, match="must not lead"):
            await turn.http.get("http://public.example/")
        assert not [event for event in heard if event[0] == "socket.connect"]

    async def test_says_that_a_name_has_no_address(
        self, turn: Turn, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        judge(monkeypatch)
        with pytest.raises(aiohttp.ClientConnectorDNSError):
            await turn.http.get("http://gone.example/")

    async def test_follows_a_redirect_only_to_where_it_may_call(
        self, turn: Turn, farm: Farm, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        judge(monkeypatch, "127.0.0.1", allowed="127.0.0.1")
        start = farm.url("/status?302&Location=/ok")
        async with turn.http.get(start) as answer:
            assert answer.status == 200
        for inside in ("http://169.254.169.254/latest/", "http://127.0.0.2:9/", "http://redis/"):
            with pytest.raises(CallRefused):
                await turn.http.get(farm.url(f"/status?302&Location={inside}"))

    async def test_ends_with_the_agent(self) -> None:
        made = make_turn()

        async def run(turn: Turn) -> AsyncIterator[str]:
            assert not turn.http.closed
            yield "said"

        with playing(run) as agent:
            assert [word async for word in drive(agent, made)] == ["said"]
        assert made.http.closed


async def test_a_synchronous_agent_has_none() -> None:
    made = make_turn()

    def ask() -> None:
        made.http.get("http://public.example/")

    with pytest.raises(RuntimeError, match="event loop"):
        await asyncio.to_thread(ask)
