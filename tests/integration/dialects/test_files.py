"""Files in every dialect: what the agent does not take is refused, and what is large is answered with a URL."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest

from a2a_tasks.agents import Part, file, registry
from a2a_tasks.models import Message, StoredFile, Task
from a2a_tasks.store.db import run_in_thread
from tests.support.bindings.client import Client
from tests.support.bindings.puppet import Puppet
from tests.support.dialects.clients import WIRES, ArtifactUpdate, Piece, Refused, StatusUpdate, Wire

pytestmark = [pytest.mark.django_db, pytest.mark.in_turn("wire", share=4)]

LARGE = bytes(range(256)) * 1024
CHART = bytes(reversed(LARGE))
PHOTO = Piece("bytes", LARGE, "image/png", "photo.png")


class Gallery(Puppet, abstract=True):
    """Takes pictures, and text with them."""

    slug = "gallery"
    default_input_modes = ("text/plain", "image/*")


@pytest.fixture(autouse=True)
def steady(settings: Any) -> None:
    """Let no URL end its time within a test."""
    settings.A2A_FILE_URL_SECONDS = 10_000_000


@pytest.fixture
def agent(host: None) -> Iterator[Puppet]:
    """The agent, in the test's hand."""
    agent = Gallery()
    registry._found[agent.slug] = agent
    yield agent
    del registry._found[agent.slug]


@pytest.fixture(params=WIRES, ids=lambda wire: wire.name)
def wire(request: pytest.FixtureRequest, client: Client) -> Wire:
    made: Wire = request.param
    return made.of(client, "gallery")


async def downloaded(client: Client, piece: Piece) -> bytes:
    """What is at the URL of a part."""
    assert piece.kind == "uri", piece
    answer = await client.get(piece.value.removeprefix("http://localhost:8000"))
    assert answer.status == 200
    return answer.body


class TestALargeFile:
    async def test_is_answered_with_urls_the_same_in_the_stream_and_when_read(
        self, wire: Wire, agent: Puppet, client: Client
    ) -> None:
        async with wire.stream("Frame it", PHOTO) as watch:
            await watch.next()
            hand = await agent.hand()
            assert await hand.turn.read(hand.turn.parts[1]) == LARGE
            hand.say(
                hand.turn.artifact(file(CHART, "chart.png", "image/png"), id="chart"),
                hand.turn.complete("Done", file(CHART[:70_000], "b.png", "image/png")),
            )
            hand.end()
            items = await watch.rest()
        read = await wire.get(watch.task, history=10)
        assert watch.folded == wire.unasked(await wire.get(watch.task))
        ((chart,),) = (made.pieces for made in read.made)
        closing = read.status.said
        photo = read.history[0].pieces[1]
        assert [await downloaded(client, piece) for piece in (chart, closing[1], photo)] == [
            CHART,
            CHART[:70_000],
            LARGE,
        ]
        assert (photo.media_type, photo.filename) == ("image/png", "photo.png")
        (told,) = [item for item in items if isinstance(item, ArtifactUpdate)]
        assert told.made.pieces == (chart,)
        assert [i.status.said for i in items if isinstance(i, StatusUpdate)][-1] == closing

    async def test_is_not_in_the_row(self, wire: Wire, agent: Puppet) -> None:
        sending = asyncio.create_task(wire.send("Frame it", PHOTO))
        (await agent.hand()).end()
        view = await sending
        bodies = await run_in_thread(lambda: list(Message.objects.values_list("body", flat=True)))
        assert [len(body) < 1000 for body in bodies] == [True]
        kept = await run_in_thread(lambda: StoredFile.objects.get(task__public_id=view.id))
        assert (kept.size, kept.media_type, kept.filename) == (len(LARGE), "image/png", "photo.png")

    async def test_may_come_with_a_later_message(
        self, wire: Wire, agent: Puppet, client: Client
    ) -> None:
        sending = asyncio.create_task(wire.send("Ask me"))
        hand = await agent.hand()
        hand.say(hand.turn.ask("Which?"))
        hand.end()
        view = await sending
        sending = asyncio.create_task(wire.send(PHOTO, task=view.id, history=10))
        hand = await agent.hand()
        assert await hand.turn.read(hand.turn.parts[0]) == LARGE
        assert (await hand.turn.history)[-1].parts == hand.turn.parts
        hand.end()
        said = (await sending).history[-1]
        assert await downloaded(client, said.pieces[0]) == LARGE


class TestASmallFile:
    async def test_stays_in_its_message_and_is_answered_as_it_came(
        self, wire: Wire, agent: Puppet
    ) -> None:
        small = Piece("bytes", LARGE[: 64 * 1024], "image/png", "small.png")
        sending = asyncio.create_task(wire.send(small, history=10))
        (await agent.hand()).end()
        view = await sending
        assert view.history[0].pieces == (small,)
        assert not await run_in_thread(StoredFile.objects.exists)


#: What the agent does not take, and why.
STRANGE = {
    "type": Piece("bytes", b"%PDF", "application/pdf", "a.pdf"),
    "type-large": Piece("bytes", LARGE, "application/pdf", "a.pdf"),
    "name": Piece("bytes", b"%PDF", "", "a.pdf"),
    "nothing-said": Piece("bytes", b"abc"),
    "url": Piece("uri", "https://example.com/a.pdf", "application/pdf"),
    "data": Piece("data", {"a": 1}),
    "not-a-kind": Piece("bytes", b"abc", "imagery/png"),
}


class TestWhatTheAgentDoesNotTake:
    @pytest.mark.parametrize("piece", STRANGE.values(), ids=STRANGE)
    async def test_is_refused_before_anything_is_stored(
        self, wire: Wire, agent: Puppet, piece: Piece
    ) -> None:
        with pytest.raises(Refused) as told:
            await wire.send("Frame it", piece)
        self._check(told.value)
        with pytest.raises(Refused) as told:
            async with wire.stream("Frame it", piece):
                pass
        self._check(told.value)
        assert not await run_in_thread(Task.objects.exists)
        assert not await run_in_thread(StoredFile.objects.exists)

    @staticmethod
    def _check(refused: Refused) -> None:
        """-32005 by JSON-RPC; over HTTP 400 in 1.0.1, 415 in what was before, and its own name where there is one."""
        said: Any = refused.response.json
        if "jsonrpc" in said:
            assert said["error"]["code"] == -32005
        else:
            assert refused.response.status in {400, 415}
            assert re.search(
                "CONTENT_TYPE_NOT_SUPPORTED|content-type-not-supported|-32005", str(said)
            )

    async def test_is_told_by_type_not_by_parameters_or_case(
        self, wire: Wire, agent: Puppet
    ) -> None:
        sending = asyncio.create_task(wire.send(Piece("bytes", b"x", "IMAGE/Png; q=1", "x")))
        (await agent.hand()).end()
        await sending

    async def test_a_url_of_the_hosts_own_scheme_is_nobodys(
        self, wire: Wire, agent: Puppet
    ) -> None:
        forged = Piece("uri", "a2a-file:" + "0" * 32, "image/png")
        with pytest.raises(Refused):
            await wire.send(forged)
        assert not await run_in_thread(Task.objects.exists)


async def test_an_agent_that_gives_back_what_it_got_keeps_one_file(
    client: Client, agent: Puppet
) -> None:
    wire = next(wire for wire in WIRES if wire.grammar.shows_history).of(client, "gallery")
    sending = asyncio.create_task(wire.send(PHOTO, history=10))
    hand = await agent.hand()
    part: Part = hand.turn.parts[0]
    hand.say(hand.turn.artifact(part, id="same"))
    hand.end()
    view = await sending
    assert view.made[0].pieces == view.history[0].pieces
    assert await run_in_thread(StoredFile.objects.count) == 1
