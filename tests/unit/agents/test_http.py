"""`turn.http`: agents call other servers by a session that leads nowhere inside."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp.http_exceptions import LineTooLong

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
                    await turn.http.get(url, timeout=aiohttp.ClientTimeout(total=60))
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


WAYS = ["read", "text", "json"]


class TestAnAnswer:
    """Read whole, it is bounded; read as it comes, each piece is."""

    @pytest.fixture(autouse=True)
    def small(self, settings: Any) -> None:
        settings.A2A_FETCH_ALLOW_PRIVATE = True
        settings.A2A_FETCH_BYTES = 100_000

    @pytest.mark.parametrize("way", WAYS)
    @pytest.mark.parametrize("path", ["/endless-body", "/endless-chunks", "/gzip-bomb"])
    async def test_is_read_up_to_the_limit(
        self, turn: Turn, farm: Farm, way: str, path: str
    ) -> None:
        async with turn.http.get(farm.url(path)) as answer:
            with pytest.raises(aiohttp.ClientPayloadError, match="100000 bytes"):
                await getattr(answer, way)()
            assert answer.closed

    async def test_of_the_limit_is_read_and_decompressed(
        self, turn: Turn, farm: Farm, settings: Any
    ) -> None:
        settings.A2A_FETCH_BYTES = 1024 * 1024
        async with turn.http.get(farm.url("/gzip-bomb")) as answer:
            assert await answer.read() == bytes(1024 * 1024)
            assert await answer.text() == "\0" * 1024 * 1024
        async with turn.http.get(farm.url("/till-the-end")) as answer:
            assert await answer.text() == "abc"
        async with turn.http.get(farm.url("/status?204")) as answer:
            assert await answer.read() == b""

    @pytest.mark.parametrize("way", WAYS)
    async def test_that_trickles_is_read_for_so_many_seconds(
        self, turn: Turn, farm: Farm, settings: Any, way: str
    ) -> None:
        settings.A2A_FETCH_SECONDS = 0.3
        async with turn.http.get(farm.url("/body-by-bytes")) as answer:
            with pytest.raises(aiohttp.ServerTimeoutError, match=r"0\.3 s"):
                await getattr(answer, way)()

    async def test_may_be_read_as_it_comes_beyond_both_limits(
        self, turn: Turn, farm: Farm, settings: Any
    ) -> None:
        settings.A2A_FETCH_SECONDS = 1.0
        async with turn.http.get(farm.url("/endless-body")) as answer:
            count = 0
            async for chunk in answer.content.iter_chunked(1000):
                assert len(chunk) <= 1000
                count += len(chunk)
                if count > 200_000:
                    break
        async with turn.http.get(farm.url("/endless-body")) as answer:
            with pytest.raises(LineTooLong, match="524288"):
                await answer.content.readline()
        begun = asyncio.get_running_loop().time()
        async with turn.http.get(farm.url("/body-by-bytes")) as answer:
            while asyncio.get_running_loop().time() - begun < 1.5:
                assert await answer.content.readany()

    async def test_that_was_compressed_comes_in_pieces_too(self, turn: Turn, farm: Farm) -> None:
        async with turn.http.get(farm.url("/gzip-bomb?16")) as answer:
            pieces = [len(piece) async for piece in answer.content.iter_any()]
        assert sum(pieces) == 16 * 1024 * 1024
        assert max(pieces) <= 1024 * 1024

    async def test_may_keep_silent_for_so_many_seconds(
        self, turn: Turn, farm: Farm, settings: Any
    ) -> None:
        settings.A2A_FETCH_SECONDS = 0.3
        with pytest.raises(aiohttp.ServerTimeoutError):
            await turn.http.get(farm.url("/never-answers"))
        with pytest.raises(TimeoutError):
            await turn.http.get(
                farm.url("/head-by-bytes"), timeout=aiohttp.ClientTimeout(total=0.3)
            )

    async def test_begins_within_minutes(
        self, turn: Turn, farm: Farm, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(agents_http, "HEAD_SECONDS", 0.3)
        with pytest.raises(aiohttp.ServerTimeoutError, match="did not begin"):
            await turn.http.get(farm.url("/head-by-bytes"))

    async def test_begins_after_few_interim_answers(self, turn: Turn, farm: Farm) -> None:
        with pytest.raises(aiohttp.ClientResponseError, match="Too many interim answers"):
            await turn.http.get(farm.url("/interim-flood"))


@pytest.mark.parametrize("loop", [False, True], ids=["without a loop", "in a loop of its own"])
async def test_a_synchronous_agent_has_none(loop: bool) -> None:
    made = make_turn()

    def ask() -> Any:
        return made.http

    async def ask_in_a_loop() -> Any:
        return made.http

    with pytest.raises(RuntimeError, match=r"turn\.http is for async agents"):
        await asyncio.to_thread(lambda: asyncio.run(ask_in_a_loop()) if loop else ask())
