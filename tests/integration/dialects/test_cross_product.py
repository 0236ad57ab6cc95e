"""What one dialect has made another reads, follows, continues and cancels: every ordered pair of wires.

A pair lives through one of the stories, and each wire through every story on both sides: `AllPairs` chooses which.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any

import pytest
from allpairspy import AllPairs

from a2a_tasks.agents import Part, Turn, data, file, link, registry
from tests.support.bindings.client import Client
from tests.support.bindings.puppet import Puppet
from tests.support.dialects.clients import (
    WIRES,
    ArtifactUpdate,
    Made,
    Piece,
    Refused,
    Said,
    StatusUpdate,
    View,
    Watch,
    Wire,
)
from tests.support.thorough import THOROUGH

pytestmark = pytest.mark.django_db

#: Messages enough for all of a test.
ALL = 10
NOISE = bytes(range(256))
PDF = "https://example.com/a%20b.pdf"
BOXED = {"data": {"value": [1, 2.5, None, True]}}
#: Every kind of part a client may send.
QUESTION = (
    Piece("text", "Look: «x»\n\u2028 \U0001f600"),
    Piece("bytes", NOISE, "image/png", "noise.png"),
    Piece("uri", PDF, "application/pdf", "a b.pdf"),
    Piece("bytes", b"abcd"),
    Piece("uri", "urn:x:1"),
    Piece("data", BOXED),
    Piece("data", [1, {"two": 2}]),
)
VALUES: tuple[Any, ...] = (BOXED, {}, {"value": 1}, [1, 2], [], "x", 7, False, None)
#: What the agent makes of it (see `results`).
MADE = (
    Made("notes", "notes", (Piece("text", "# Notes", "text/markdown", "notes.md"), *QUESTION[1:3])),
    Made("page", "page", (Piece("text", "ab"), Piece("uri", "urn:x:2"), Piece("text", "c"))),
    Made("log", "", (Piece("data", [0]), Piece("text", "end"))),
    Made("values", "values", tuple(Piece("data", value) for value in VALUES)),
)
CLOSING = (Piece("text", "Done"), Piece("bytes", b"bye", "text/plain", "bye.txt"))
EVENTS = ["working", "notes!", "page", "log", "+page", "+log!", "+page!", "values!", "completed"]


class Open(Puppet, abstract=True):
    """Takes whatever it is given."""

    slug = "open"
    default_input_modes = ("*/*",)


class Replying(Open, abstract=True):
    """May answer with a direct Message."""

    slug = "replying"
    replies_directly = True


def hosted(agent: Puppet) -> Iterator[Puppet]:
    registry._found[agent.slug] = agent
    yield agent
    del registry._found[agent.slug]


@pytest.fixture
def agent(host: None) -> Iterator[Puppet]:
    yield from hosted(Open())


@pytest.fixture
def replying(host: None) -> Iterator[Puppet]:
    yield from hosted(Replying())


@dataclass(frozen=True)
class Pair:
    """Whoever begins a task, and whoever meets it then."""

    creator: Wire
    reader: Wire


@pytest.fixture
def pair(request: pytest.FixtureRequest, client: Client) -> Pair:
    creator, reader = request.param
    return Pair(creator.of(client, "open"), reader.of(client, "open"))


@pytest.fixture
def creator(request: pytest.FixtureRequest, client: Client) -> Wire:
    wire: Wire = request.param
    return wire.of(client, "open")


@pytest.fixture
def readers(client: Client) -> list[Wire]:
    return [wire.of(client, "open") for wire in WIRES]


#: What a pair may live through; to follow takes a reader that can subscribe.
STORIES = ("reads", "answers", "follows", "joins", "cancels", "is told the state")
FOLLOWING = {"follows", "joins"}


def may_be(chosen: list[Any]) -> bool:
    """Can this reader live through this story? Asked with the first of the three, too."""
    return len(chosen) < 3 or chosen[1].subscribes or chosen[2] not in FOLLOWING


def turns() -> Iterator[tuple[Wire, Wire, str]]:
    """Each creator and each reader in every story, with whoever's turn it is."""
    for m, story in enumerate(STORIES):
        readers = [wire for wire in WIRES if wire.subscribes or story not in FOLLOWING]
        for n, creator in enumerate(WIRES):
            yield creator, readers[(n + 2 * m) % len(readers)], story


#: (creator, reader, story): every two of them that may meet do, somewhere; in `make test` not every two wires.
CHOSEN: list[tuple[Wire, Wire, str]] = (
    [tuple(case) for case in AllPairs([WIRES, WIRES, STORIES], filter_func=may_be)]
    if THOROUGH
    else list(turns())
)


def pairs(story: str) -> pytest.MarkDecorator:
    found = [pytest.param((a, b), id=f"{a.name}-{b.name}") for a, b, of in CHOSEN if of == story]
    return pytest.mark.parametrize("pair", found, indirect=True)


def creators(wires: Sequence[Wire]) -> pytest.MarkDecorator:
    found = [pytest.param(wire, id=wire.name) for wire in wires]
    return pytest.mark.parametrize("creator", found, indirect=True)


OLDEST = [wire for wire in WIRES if wire.grammar.names_tasks]


def results(turn: Turn) -> list[Any]:
    """Several artifacts, of every kind of part; two grow in turns."""
    page, log = turn.stream("page", description="In pieces."), turn.stream(id="log")
    notes = Part(text="# Notes", media_type="text/markdown", filename="notes.md")
    noise = file(NOISE, "noise.png", "image/png")
    pdf = link(PDF, filename="a b.pdf", media_type="application/pdf")
    return [
        turn.artifact(notes, noise, pdf, name="notes"),
        page.write("ab"),
        log.write(data([0])),
        page.write(link("urn:x:2")),
        log.write("end", last=True),
        page.write("c", last=True),
        turn.artifact(*map(data, VALUES), name="values"),
        turn.complete("Done", file(b"bye", "bye.txt", "text/plain")),
    ]


async def told(
    wire: Wire,
    agent: Puppet,
    *question: Piece | str,
    say: Callable[[Turn], list[Any]],
    task: str = "",
    context: str = "",
) -> View:
    """What this wire is answered when the agent says that."""
    sending = asyncio.create_task(wire.send(*question, task=task, context=context, history=ALL))
    hand = await agent.hand()
    hand.say(*say(hand.turn))
    hand.end()
    return await sending


def asks(*texts: str) -> tuple[Said, ...]:
    return tuple(Said("user", (Piece("text", text),)) for text in texts)


def event(item: object) -> str:
    """An event of a stream in a word: `+page!` is the last piece of an artifact that had begun."""
    if isinstance(item, ArtifactUpdate):
        return "+" * item.append + item.made.id + "!" * item.last
    assert isinstance(item, StatusUpdate)
    return item.status.word


def statuses(items: Iterable[object]) -> list[str]:
    return [item.status.word for item in items if isinstance(item, StatusUpdate)]


def test_every_two_wires_meet_and_each_lives_through_every_story_on_both_sides() -> None:
    met = {(a.name, b.name) for a, b, _ in CHOSEN}
    assert met == {(a.name, b.name) for a in WIRES for b in WIRES} or not THOROUGH
    assert {(a.name, story) for a, _, story in CHOSEN} == {
        (wire.name, story) for wire in WIRES for story in STORIES
    }
    assert {(b.name, story) for _, b, story in CHOSEN} == {
        (wire.name, story)
        for wire in WIRES
        for story in STORIES
        if wire.subscribes or story not in FOLLOWING
    }


class TestOfEveryPair:
    @pairs("reads")
    async def test_what_one_has_finished_the_other_reads(self, pair: Pair, agent: Puppet) -> None:
        """Parts of every kind, up and down (dialects §9.1, §9.2); the context is the client's."""
        sent = await told(pair.creator, agent, *QUESTION, say=results, context="ours")
        read = await pair.reader.get(sent.id, history=ALL)
        assert read == sent
        assert (read.context, read.history) == ("ours", (Said("user", QUESTION),))
        assert (read.status.word, read.status.said, read.made) == ("completed", CLOSING, MADE)

    @pairs("answers")
    async def test_what_one_is_asked_the_other_answers(self, pair: Pair, agent: Puppet) -> None:
        """The stream of the send ends with the question, a subscription with the task (C-09)."""
        async with AsyncExitStack() as stack:
            asked = await stack.enter_async_context(pair.creator.stream("Paint it"))
            await asked.next()
            hand = await agent.hand()
            followed = await self._follow(stack, pair.reader, asked.task)
            hand.say(hand.turn.artifact("A sketch", id="sketch"), hand.turn.ask("Which colour?"))
            hand.end()
            await asked.rest()
            assert asked.word == "input-required"
            answer = pair.reader.stream("Blue", task=asked.task)
            answered = await stack.enter_async_context(answer)
            await answered.next()
            hand = await agent.hand()
            hand.say(hand.turn.artifact("A painting", id="painting"))
            hand.end()
            await answered.rest()
            if followed:
                words = statuses(await followed.rest())
                assert words == ["input-required", "working", "completed"]
        read = await pair.creator.get(asked.task, history=ALL)
        assert read == await pair.reader.get(asked.task, history=ALL)
        before, after = asks("Paint it", "Blue")
        asked_then = Said("agent", (Piece("text", "Which colour?"),))
        assert (read.status.word, read.history) == ("completed", (before, asked_then, after))
        assert [made.id for made in read.made] == ["sketch", "painting"]
        for watch in filter(None, (asked, followed, answered)):
            self._check_places(watch)

    @staticmethod
    def _check_places(watch: Watch) -> None:
        """Artifacts keep their places, whichever stream tells of them (dialects §9.1, P6)."""
        places = {"sketch": 0, "painting": 1}
        told = {id_: place for id_, place in watch.places.items() if place is not None}
        assert told == {id_: places[id_] for id_ in told}
        assert watch.folded.made[-1].id == list(watch.places)[-1]

    @staticmethod
    async def _follow(stack: AsyncExitStack, wire: Wire, task: str) -> Watch | None:
        if not wire.subscribes:
            return None
        watch = await stack.enter_async_context(wire.subscribe(task))
        await watch.until("working")
        return watch

    @pairs("follows")
    async def test_what_one_has_begun_the_other_follows(self, pair: Pair, agent: Puppet) -> None:
        """Both see the same events in the same order (R-047), and what they could have read (R-016)."""
        async with pair.creator.stream(*QUESTION, context="ours") as mine:
            await mine.next()
            hand = await agent.hand()
            await mine.until("working")
            async with pair.reader.subscribe(mine.task) as yours:
                await yours.next()
                assert yours.word == "working"
                hand.say(hand.turn.working("Thinking"), *results(hand.turn))
                hand.end()
                ours, theirs = await mine.rest(), await yours.rest()
        assert ours == theirs
        assert [event(item) for item in ours] == EVENTS
        for watch, wire in ((mine, pair.creator), (yours, pair.reader)):
            read = await wire.get(mine.task)
            assert watch.folded == wire.unasked(read)
            assert read.made == MADE

    @pairs("joins")
    async def test_what_one_has_half_done_the_other_follows(
        self, pair: Pair, agent: Puppet
    ) -> None:
        """An artifact that grows is whole for who joins; where streams are events alone, it keeps its place."""
        async with pair.creator.stream("Write") as mine:
            await mine.next()
            hand = await agent.hand()
            page = hand.turn.stream("page")
            hand.say(hand.turn.artifact("A title", id="title"), page.write("a"))
            while list(mine.places) != ["title", "page"]:
                await mine.next()
            async with pair.reader.subscribe(mine.task) as yours:
                await yours.next()
                hand.say(page.write("b"), page.write("c", last=True))
                hand.end()
                ours, theirs = await mine.rest(), await yours.rest()
        assert ours == theirs
        assert [event(item) for item in theirs] == ["+page", "+page!", "completed"]
        assert yours.places["page"] in {None, 1}
        read = await pair.reader.get(mine.task)
        assert read.made[1].pieces == tuple(Piece("text", text) for text in "abc")
        assert mine.folded.made == read.made
        if pair.reader.grammar.begins_with_task:
            assert yours.folded == read

    @pairs("cancels")
    async def test_what_one_has_begun_the_other_cancels(self, pair: Pair, agent: Puppet) -> None:
        """The open stream of the one ends with it."""
        async with pair.creator.stream("Go on for ever") as watch:
            await watch.next()
            hand = await agent.hand()
            canceled = await pair.reader.cancel(watch.task)
            assert (canceled.id, canceled.status.word) == (watch.task, "canceled")
            await watch.rest()
            await hand.ended()
        read = await pair.creator.get(watch.task)
        assert read.status == canceled.status
        assert watch.folded == pair.creator.unasked(read)

    @pairs("is told the state")
    async def test_a_state_one_has_no_word_for_is_told(self, pair: Pair, agent: Puppet) -> None:
        """Dialects §9.1, P1 and P2: as another state, with a message that says which is meant."""
        asked = await told(
            pair.creator, agent, "Buy it", say=lambda turn: [turn.need_auth("Which token?")]
        )
        self._check_state(pair.creator, asked, "auth-required", "Which token?")
        read = await pair.reader.get(asked.id)
        self._check_state(pair.reader, read, "auth-required", "Which token?")
        refused = await told(
            pair.reader, agent, "None", task=asked.id, say=lambda turn: [turn.reject("No deal")]
        )
        self._check_state(pair.reader, refused, "rejected", "No deal")
        read = await pair.creator.get(asked.id)
        self._check_state(pair.creator, read, "rejected", "No deal")

    @staticmethod
    def _check_state(wire: Wire, view: View, word: str, text: str) -> None:
        assert (view.status.word, view.status.said) == (word, (Piece("text", text),))
        assert view.status.shown == wire.shown(word)


class TestWhoNamesATask:
    @creators(OLDEST)
    async def test_is_the_client_for_all_where_it_may(
        self, creator: Wire, readers: list[Wire], agent: Puppet
    ) -> None:
        sent = await told(creator, agent, "Hello", task="my task/1", say=lambda turn: ["Hi"])
        assert sent.id == "my task/1"
        for reader in readers:
            assert await reader.get("my task/1", history=ALL) == sent

    @pytest.mark.in_turn("creator", share=3)
    @creators([wire for wire in WIRES if wire.grammar.may_leave])
    async def test_is_else_the_host_at_once(
        self, creator: Wire, readers: list[Wire], agent: Puppet
    ) -> None:
        one, other = await creator.send("One", waits=False), await creator.send("Two", waits=False)
        assert one.id != other.id
        assert one.status.word in {"submitted", "working"}
        for hand in (await agent.hand(), await agent.hand()):
            hand.end()
            await hand.ended()
        async with creator.stream("Three", context=one.context) as watch:
            await watch.next()
            await agent.hand()
            await watch.until("working")
            for reader in readers:
                read = await reader.get(watch.task, history=ALL)
                assert (read.status.word, read.history) == ("working", asks("Three"))
                assert read.context == one.context


class TestAStateWithoutAMessage:
    @pytest.mark.in_turn("creator", share=3)
    @creators(WIRES)
    async def test_gets_one_where_it_has_no_word(
        self, creator: Wire, readers: list[Wire], agent: Puppet
    ) -> None:
        """Decision 9: made up, to carry what is meant."""
        asked = await told(creator, agent, "Go", say=lambda turn: [turn.need_auth()])
        refused = await told(creator, agent, "Go", say=lambda turn: [turn.reject()])
        for word, task in (("auth-required", asked.id), ("rejected", refused.id)):
            for reader in readers:
                status = (await reader.get(task)).status
                assert (status.word, status.shown) == (word, reader.shown(word))
                assert bool(status.said) == (status.shown != word)


class TestADirectMessage:
    @creators(OLDEST)
    async def test_closes_a_task_where_there_are_only_tasks(
        self, creator: Wire, client: Client, replying: Puppet
    ) -> None:
        """Dialects §9.1, P9; decision 9."""
        sent = await told(
            creator.of(client, "replying"), replying, "Hello", say=lambda turn: [turn.reply("Hi")]
        )
        assert (sent.status.word, sent.status.said) == ("completed", (Piece("text", "Hi"),))
        for wire in WIRES:
            assert await wire.of(client, "replying").get(sent.id, history=ALL) == sent


class TestAnOldStream:
    @creators(OLDEST)
    async def test_ends_where_its_client_reads_a_question(
        self, creator: Wire, readers: list[Wire], agent: Puppet
    ) -> None:
        """Decision 9: a missing credential is shown as one."""
        async with creator.stream("Go") as watch:
            await watch.next()
            hand = await agent.hand()
            hand.say(hand.turn.need_auth("Which token?"))
            hand.end()
            await watch.rest()
        assert watch.word == "auth-required"
        for reader in readers:
            assert creator.unasked(await reader.get(watch.task)) == watch.folded


class TestAnEndedTask:
    @creators(OLDEST)
    async def test_is_begun_anew_for_all_by_those_who_may(
        self, creator: Wire, readers: list[Wire], agent: Puppet
    ) -> None:
        """Decision 9: whoever of them had made it."""
        for maker in [reader for reader in readers if reader.grammar.names_tasks]:
            ended = await told(maker, agent, "One", say=lambda turn: ["First"])
            again = await told(creator, agent, "Two", task=ended.id, say=lambda turn: ["Second"])
            assert (again.id, again.context) == (ended.id, ended.context)
            assert again.made[-1].pieces == (Piece("text", "Second"),)
            for reader in readers:
                assert await reader.get(ended.id, history=ALL) == again

    @creators(OLDEST)
    async def test_that_the_host_named_is_not_begun_anew(
        self, creator: Wire, readers: list[Wire], agent: Puppet
    ) -> None:
        """Decision 9: its client counts on its id."""
        for maker in [reader for reader in readers if not reader.grammar.names_tasks]:
            ended = await told(maker, agent, "One", say=lambda turn: ["First"])
            with pytest.raises(Refused) as caught:
                await creator.send("Two", task=ended.id)
            assert caught.value.response.json["error"]["code"] == -32602
            for reader in readers:
                assert await reader.get(ended.id, history=ALL) == ended

    @creators(OLDEST)
    async def test_begun_anew_is_kept_as_it_ended(
        self, creator: Wire, readers: list[Wire], agent: Puppet
    ) -> None:
        """It has another name, which its successor tells where there is room; seed-0 has none."""
        talk = Piece("data", {"taskId": "mine"})  # what was said of it is no name of it
        ended = await told(
            creator, agent, talk, task="mine", say=lambda turn: [turn.complete(data(talk.value))]
        )
        await told(creator, agent, "Two", task=ended.id, say=lambda turn: ["Second"])
        names = {(await reader.get(ended.id)).before for reader in readers[1:]}
        (before,) = names
        for reader in readers:
            assert await reader.get(before, history=ALL) == replace(ended, id=before)

    @pytest.mark.in_turn("creator", share=3)
    @creators(WIRES)
    async def test_is_shown_or_refused_to_who_subscribes(
        self, creator: Wire, readers: list[Wire], agent: Puppet
    ) -> None:
        ended = await told(creator, agent, "One", say=lambda turn: [turn.fail("No")])
        for reader in [reader for reader in readers if reader.subscribes]:
            if not reader.grammar.follows_ended:
                with pytest.raises(Refused):
                    async with reader.subscribe(ended.id):
                        pass
                continue
            async with reader.subscribe(ended.id) as watch:
                items = await watch.rest()
            assert statuses(items) == ["failed"]
            assert watch.folded == reader.unasked(await reader.get(ended.id))


class TestTheEventsOfATaskBegunAnew:
    """Their ids tell them from those of the task that ended under its id."""

    @pytest.mark.parametrize(
        "pair",
        [
            # `make test` has each reader once, and each creator several times
            pytest.param(
                (creator, reader),
                id=f"{creator.name}-{reader.name}",
                marks=() if n % len(OLDEST) == m else (pytest.mark.thorough,),
            )
            for m, creator in enumerate(OLDEST)
            for n, reader in enumerate(wire for wire in WIRES if wire.subscribes)
        ],
        indirect=True,
    )
    async def test_are_not_taken_for_those_a_client_saw_before(
        self, pair: Pair, agent: Puppet
    ) -> None:
        await told(pair.creator, agent, "One", task="mine", say=lambda turn: ["First"])
        params = pair.creator.grammar.send(
            [Piece("text", "Two")], "mine", "", waits=True, history=None
        )
        async with pair.creator.opened("stream", params) as mine:
            hand = await agent.hand()
            hand.say("Second")
            events = [event for _ in range(3) if (event := await mine.next())]
            last = events[-1].id or 0
            (mark,) = {event.mark for event in events}
            for foreign in ("1", f"{last - 1}", f"{last - 1}-00000000", f"{last + 1}-{mark}"):
                at, item = await self._first(pair.reader, foreign)
                whole = View if pair.reader.grammar.begins_with_task else StatusUpdate
                assert isinstance(item, whole)
                assert at == (last, mark)
            at, item = await self._first(pair.reader, f"{last - 1}-{mark}")
            assert isinstance(item, ArtifactUpdate)
            assert (at, item.made.pieces) == ((last, mark), (Piece("text", "Second"),))
            hand.end()
            await mine.rest()
        assert (await pair.reader.get("mine")).before.startswith(mark)

    @staticmethod
    async def _first(reader: Wire, seen: str) -> tuple[tuple[int | None, str], Any]:
        async with reader.opened("subscribe", {"id": "mine"}, seen=seen) as stream:
            event = await stream.next()
            assert event is not None
            return (event.id, event.mark), reader.grammar.item(reader.binding.item(event))
