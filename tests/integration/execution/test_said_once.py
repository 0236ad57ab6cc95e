"""What a client reads after any number of parks, deaths and hand-backs is what one uninterrupted attempt says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from a2a_tasks.agents import Agent, Turn
from a2a_tasks.agents.emission import Chunk, text
from a2a_tasks.caller import OwnerScope
from a2a_tasks.execution.runner import Runner
from a2a_tasks.models import Event, Run, Task
from a2a_tasks.protocol.lifecycle import EventKind, assemble
from a2a_tasks.protocol.values import Artifact
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.replies import reply
from a2a_tasks.store.tasks import find_by_key
from tests.integration.execution.test_parking import pass_the_hour
from tests.support.agents_under_test import playing, until_told
from tests.support.execution.host import due, ended, status, take_away, tools_told
from tests.support.execution.waiting import until
from tests.support.store.world import new
from tests.support.thorough import examples

pytestmark = pytest.mark.quick_on("sqlite")
HOUR = 3600.0
KILL, HAND_BACK = "kill", "hand back"
_read = msgspec.json.Decoder(Artifact).decode


@pytest.fixture(autouse=True)
def local(settings: Any) -> None:
    """Let runs be this process's own, and every sleep of more than a moment be a long one."""
    settings.A2A_RUNS = "local"
    settings.A2A_POLL_SECONDS = 0.02
    settings.A2A_PARK_SECONDS = 0.05


class Fault(NamedTuple):
    """A fault before an operation of a turn; it happens once."""

    turn: int
    operation: int
    how: str


class Play:
    """Turns of an agent, each a list of operations, and the faults that meet it."""

    def __init__(self, turns: list[list[str]], faults: list[Fault]) -> None:
        self.turns, self._faults = turns, list(faults)
        #: The faults whose moment has come.
        self.met: asyncio.Queue[str] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()

    def _meet(self, turn: int, operation: int) -> bool:
        due = [fault for fault in self._faults if fault[:2] == (turn, operation)]
        if not due:
            return False
        self._faults.remove(due[0])
        self._loop.call_soon_threadsafe(self.met.put_nowait, due[0].how)
        return True

    async def asynchronous(self, turn: Turn) -> AsyncIterator[Any]:
        """Play a turn."""
        number, pages = int(turn.text), [turn.stream(), turn.stream("page")]
        for n, operation in enumerate(self.turns[number]):
            if self._meet(number, n):
                await asyncio.Event().wait()
            name = f"{operation} {n}"
            if operation == "step":
                await turn.step(name, str, n)
            elif operation == "sleep":
                await turn.sleep(HOUR, name=f"sleep {name}")
            else:
                yield _say(turn, operation, f"{number}.{n} ", pages)
        if number + 1 < len(self.turns):
            yield turn.ask("And now?")

    def synchronous(self, turn: Turn) -> Iterator[Any]:
        """Play a turn in a thread."""
        number, pages = int(turn.text), [turn.stream(), turn.stream("page")]
        for n, operation in enumerate(self.turns[number]):
            if self._meet(number, n):
                until_told(turn)
            name = f"{operation} {n}"
            if operation == "step":
                turn.step(name, str, n).now()
            elif operation == "sleep":
                turn.sleep(HOUR, name=f"sleep {name}").now()
            else:
                yield _say(turn, operation, f"{number}.{n} ", pages)
        if number + 1 < len(self.turns):
            yield turn.ask("And now?")


def _say(turn: Turn, operation: str, words: str, pages: list[Any]) -> Any:
    """The value of an operation."""
    if operation == "text":
        return words
    if operation == "artifact":
        return turn.artifact(words)
    if operation == "tool":
        return turn.tool_call(words, "look", {})
    if operation == "append":  # as executors do, also for the first piece
        return Chunk(artifact_id="ledger", parts=(text(words),), append=True)
    return pages[operation == "page"].write(words)


def expected(turns: list[list[str]]) -> list[str]:
    """The texts of the artifacts after one uninterrupted attempt of each turn, sorted."""
    found: dict[str, str] = {}
    for number, operations in enumerate(turns):
        begun = set[str]()
        for n, operation in enumerate(operations):
            key = {"append": "ledger", "page": "page", "artifact": f"artifact {number}.{n}"}.get(
                operation, f"{operation} {number}"
            )
            if operation in {"step", "sleep", "tool"}:
                continue
            anew = operation == "page" and key not in begun
            begun.add(key)
            found[key] = ("" if anew else found.get(key, "")) + f"{number}.{n} "
    return sorted(found.values())


def _texts(whole: list[bytes]) -> list[str]:
    return sorted("".join(str(part.text) for part in _read(raw).parts) for raw in whole)


def as_read() -> list[str]:
    """The texts of the artifacts that GetTask returns. For a thread with a connection."""
    found = find_by_key(Task.objects.get().pk)
    assert found is not None
    raw = found.view.artifacts
    return _texts([bytes(one) for one in raw] if isinstance(raw, list) else [])


def as_streamed() -> list[str]:
    """The texts of the artifacts for a client that has read every event. For a thread with a connection."""
    pieces = Event.objects.filter(kind=EventKind.ARTIFACT).order_by("number")
    return _texts(list(assemble(pieces.values_list("body", flat=True)).values()))


async def played(agent: Agent, play: Play) -> None:
    """Let the task come to its end: wake what is parked, answer, and cause the faults."""
    await due(agent.slug, text="0")
    turn = 0
    async with AsyncExitStack() as stack:
        made = await _begin(stack)
        while (word := await until(lambda: _stands(play))) != "completed":
            if word == "asks":
                turn += 1
                scope = OwnerScope("", "user:alice", agent.slug)
                await run_in_thread(reply, new("task-1", text=str(turn), scope=scope))
            elif word == "parked":
                await run_in_thread(pass_the_hour)
            elif word == KILL:
                await run_in_thread(take_away, "task-1")
            else:
                await ended(made)
                made = await _begin(stack)


async def _begin(stack: AsyncExitStack) -> Runner:
    made = Runner()
    made.start()
    stack.push_async_callback(ended, made)
    return made


async def _stands(play: Play) -> str | None:
    """What the play needs now."""
    if not play.met.empty():
        return play.met.get_nowait()
    run = await run_in_thread(Run.objects.latest, "pk")
    word = await status()
    if word == "completed":
        return word
    if run.is_parked and run.due_at.timestamp() > run.created_at.timestamp() + HOUR / 2:
        return "parked"
    return "asks" if run.status == "ended" else None


OPERATIONS = ("text", "stream", "page", "artifact", "append", "tool", "step", "sleep")
TURNS = st.lists(
    st.lists(st.sampled_from(OPERATIONS), min_size=1, max_size=7), min_size=1, max_size=2
)
FAULTS = st.lists(
    st.builds(Fault, st.integers(0, 1), st.integers(0, 6), st.sampled_from([KILL, HAND_BACK])),
    max_size=4,
    unique_by=lambda fault: fault[:2],
)


def at_most_two_deaths(faults: list[Fault]) -> list[Fault]:
    """The faults without the third death, after which a task fails."""
    deaths = [fault for fault in faults if fault.how == KILL]
    return [fault for fault in faults if fault not in deaths[2:]]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["asynchronous", "synchronous"])
@example(turns=[["text", "sleep", "text", "step", "text"]], faults=[Fault(0, 3, KILL)])
@example(turns=[["text", "sleep", "text", "step", "text"]], faults=[Fault(0, 3, HAND_BACK)])
@example(
    turns=[["stream", "sleep", "stream", "text", "sleep", "text", "stream"]],
    faults=[Fault(0, 3, KILL), Fault(0, 6, HAND_BACK)],
)
@example(turns=[["artifact", "artifact", "step"]], faults=[Fault(0, 2, KILL)])
@example(
    turns=[["append", "append"], ["append", "sleep", "append", "text"]],
    faults=[Fault(0, 1, KILL), Fault(1, 1, HAND_BACK), Fault(1, 3, KILL)],
)
@example(turns=[["tool", "sleep", "tool", "text"]], faults=[Fault(0, 3, KILL)])
@given(turns=TURNS, faults=FAULTS)
@hypothesis(
    max_examples=examples(60, quick=8),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_a_client_reads_what_one_uninterrupted_attempt_says(
    kind: str, turns: list[list[str]], faults: list[Fault]
) -> None:
    asyncio.run(lived(kind, turns, at_most_two_deaths(faults)))


async def lived(kind: str, turns: list[list[str]], faults: list[Fault]) -> None:
    """One task through these faults."""
    await run_in_thread(Task.objects.all().delete)
    play = Play(turns, faults)
    with playing(getattr(play, kind)) as agent:
        await asyncio.wait_for(played(agent, play), 120)
    assert await run_in_thread(as_read) == expected(turns)
    assert await run_in_thread(as_streamed) == expected(turns)
    told = [call["toolCall"]["id"] for call in await run_in_thread(tools_told, "task-1")]
    assert told == [
        f"{number}.{n} "
        for number, operations in enumerate(turns)
        for n, operation in enumerate(operations)
        if operation == "tool"
    ]


class Late(Play):
    """An agent whose second attempt waits where its first one, which died later, did not need to."""

    async def asynchronous(self, turn: Turn) -> AsyncIterator[Any]:
        """Append to two artifacts."""
        yield Chunk(artifact_id="first", parts=(text("a"),), append=True)
        if turn.attempt > 1:
            await turn.sleep(HOUR)
        yield Chunk(artifact_id="second", parts=(text("b"),), append=True)
        if self._meet(0, 0):
            await asyncio.Event().wait()


@pytest.mark.django_db(transaction=True)
def test_a_park_after_a_death_keeps_nothing_of_what_the_dead_attempt_said_later() -> None:
    async def lived() -> None:
        play = Late([["append"]], [Fault(0, 0, KILL)])
        with playing(play.asynchronous) as agent:
            await asyncio.wait_for(played(agent, play), 60)
        assert await run_in_thread(as_read) == ["a", "b"]
        assert await run_in_thread(as_streamed) == ["a", "b"]

    asyncio.run(lived())


class Silent(Play):
    """An agent that does not say again what it had said before its wait."""

    has_said = False

    async def asynchronous(self, turn: Turn) -> AsyncIterator[Any]:
        """Append to an artifact."""
        if not self.has_said:
            self.has_said = True
            yield Chunk(artifact_id="first", parts=(text("a"),), append=True)
        await turn.sleep(HOUR)
        yield Chunk(artifact_id="first", parts=(text("b"),), append=True)


@pytest.mark.django_db(transaction=True)
def test_what_was_said_before_a_park_stays_though_the_agent_does_not_repeat_it() -> None:
    async def lived() -> None:
        play = Silent([["append"]], [])
        with playing(play.asynchronous) as agent:
            await asyncio.wait_for(played(agent, play), 60)
        assert await run_in_thread(as_read) == ["ab"]

    asyncio.run(lived())
