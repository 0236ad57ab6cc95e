"""Mistakes of agents are told with the line of the author's code: in the run's trace or its log, and in the host's log."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from a2a_tasks.agents import Turn, data, registry
from a2a_tasks.execution import run_log
from a2a_tasks.models import Run, RunLine, Task
from a2a_tasks.store.db import run_in_thread
from tests.integration.execution.process_agents import agents
from tests.integration.execution.process_agents.agents import Script
from tests.support.agents_under_test import playing
from tests.support.execution.host import Client, hosting
from tests.support.execution.waiting import until

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]


@pytest.fixture(autouse=True)
def local(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs be this process's own, and lines be written soon."""
    settings.A2A_RUNS = "local"
    monkeypatch.setattr(run_log, "EVERY", 0.02)


def line_of(run: Callable[..., Any], text: str) -> str:
    """`file:line` of the first line of a function with this text."""
    lines, first = inspect.getsourcelines(run)
    number = next(number for number, line in enumerate(lines) if text in line)
    return f"{inspect.getsourcefile(run)}:{first + number}"


def nested(depth: int) -> list[Any]:
    """Lists in lists."""
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


async def carried(
    run: Callable[..., Any], *, hosted: bool = True, **about: Any
) -> tuple[str, list[str]]:
    """What the trace and the log of an agent's run say; in a host of its own, unless there is one."""
    with playing(run, **about) as agent:
        async with hosting() if hosted else nullcontext():
            task = await Client(agent).send()
    found = await run_in_thread(Run.objects.get, task__public_id=task.id)
    return found.error, await run_in_thread(_logged)


def calling(script: Callable[[Turn], Any]) -> Callable[[Turn], Any]:
    """What runs a script in the event loop, as `Script` does in its process."""
    return lambda turn: script(turn)


@dataclass(frozen=True)
class Told:
    """What one turn in a process has left: the trace of its run, the run, and its task's memory."""

    trace: str
    run: int
    memory: str


Tell = Callable[[str], Awaitable[Told]]


@pytest.fixture
async def scripted(agent_processes: None) -> AsyncIterator[Tell]:
    """Send a word to `Script`, which runs in a process of its own: one for all words of a test, as it takes its time to start."""
    registry.register(Script)
    agent = registry.find_hosted(Script.slug)
    assert agent is not None

    async def tell(word: str) -> Told:
        task = await Client(agent).send(word)
        run = await run_in_thread(Run.objects.get, task__public_id=task.id)
        memory = (await run_in_thread(Task.objects.get, public_id=task.id)).memory
        return Told(run.error, run.pk, memory)

    try:
        async with hosting():
            yield tell
    finally:
        registry._found.pop(Script.slug)


def _logged() -> list[str]:
    return list(RunLine.objects.order_by("number").values_list("text", flat=True))


class TestWhatDoesNothing:
    async def test_is_told_in_both_logs(self, caplog: pytest.LogCaptureFixture) -> None:
        async def run(turn: Turn) -> AsyncIterator[Any]:
            turn.ask("Which one?")
            yield "x"
            turn.sleep(1)
            turn.step("pay", len, "abc")
            turn.stream("page").write("lost")

        expected = [
            f"{line_of(run, 'turn.ask')}: without yield turn.ask(...) it does nothing",
            f"{line_of(run, 'turn.sleep')}: without await turn.sleep(...) it does nothing",
            f"{line_of(run, 'turn.step')}: without await turn.step(...) it does nothing",
            f"{line_of(run, '.write')}: without yield page.write(...) it does nothing",
        ]
        assert (await carried(run))[1] == expected
        assert [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING] == expected

    async def test_is_told_though_the_task_was_ended_by_a_word(self) -> None:
        async def run(turn: Turn) -> AsyncIterator[Any]:
            turn.artifact("lost")
            yield turn.complete("done")

        (told,) = (await carried(run))[1]
        assert told.startswith(line_of(run, "turn.artifact"))

    async def test_made_in_a_thread_of_asyncio_is_told_with_the_agent(self) -> None:
        async def run(turn: Turn) -> str:
            await asyncio.to_thread(turn.ask, "Which one?")
            return "x"

        (told,) = (await carried(run))[1]
        assert told == f"{line_of(run, 'def run')}: without yield turn.ask(...) it does nothing"

    async def test_made_in_a_thread_of_asgiref_is_told_with_the_agent(self) -> None:
        async def run(turn: Turn) -> str:
            await sync_to_async(turn.ask)("Which one?")
            return "x"

        (told,) = (await carried(run))[1]
        assert told.startswith(f"{line_of(run, 'def run')}: ")

    async def test_made_by_the_event_loop_is_told_with_the_agent(self) -> None:
        async def run(turn: Turn) -> str:
            asyncio.get_running_loop().call_soon(turn.ask, "Which one?")
            await asyncio.sleep(0)
            return "x"

        (told,) = (await carried(run))[1]
        assert told.startswith(f"{line_of(run, 'def run')}: ")

    async def test_made_in_a_thread_by_the_author_is_told_with_the_line(self) -> None:
        def asks(turn: Turn) -> None:
            turn.ask("Which one?")

        async def run(turn: Turn) -> str:
            await asyncio.to_thread(asks, turn)
            return "x"

        (told,) = (await carried(run))[1]
        assert told.startswith(f"{line_of(asks, 'turn.ask')}: ")

    async def test_is_not_told_of_what_was_used(self) -> None:
        def run(turn: Turn) -> Iterator[Any]:
            page = turn.stream("page")
            for _ in range(200):
                yield page.write("x")
            assert turn.step("count", len, "abc").now() == 3
            turn.sleep(0).now()
            kept = [turn.artifact("a"), turn.artifact("b")]
            yield from kept
            yield turn.ask("Next?")

        assert (await carried(run))[1] == []

    async def test_nor_of_what_is_returned(self) -> None:
        async def run(turn: Turn) -> Any:
            await turn.sleep(0)
            return turn.complete("done")

        assert (await carried(run))[1] == []


class TestWhatCannotBeRecorded:
    async def test_names_the_line_of_an_async_generator(self) -> None:
        async def run(turn: Turn) -> AsyncIterator[Any]:
            yield "x"
            yield 42

        trace, _ = await carried(run)
        assert "int cannot be content" in trace
        assert f"It was emitted at {line_of(run, 'yield 42')}" in trace

    async def test_names_that_of_the_innermost_generator(self) -> None:
        def inner() -> Iterator[Any]:
            yield data(object())

        def run(turn: Turn) -> Iterator[Any]:
            yield from inner()

        assert f"It was emitted at {line_of(inner, 'yield')}" in (await carried(run))[0]

    async def test_names_the_function_that_returned_it(self) -> None:
        async def run(turn: Turn) -> Any:
            return {"answer": 42}

        assert f"It was emitted at {line_of(run, 'def run')}" in (await carried(run))[0]

    @pytest.mark.parametrize("left", [None, [1], "x"])
    async def test_of_memory_that_is_no_dict_the_agent_is_named(self, left: Any) -> None:
        async def run(turn: Turn) -> str:
            turn.memory = left
            return "x"

        trace, _ = await carried(run)
        assert f"TypeError: turn.memory must be a dict, not a {type(left).__name__}" in trace
        assert line_of(run, "def run") in trace

    @pytest.mark.parametrize(
        ("kept", "named"),
        [
            ({"cart": [1, {"when": object()}]}, "turn.memory['cart'][1]['when']"),
            ({"cart": {(1, 2): "x"}}, "turn.memory['cart'][(1, 2)]"),
            ({"tags": {"a", "b"}}, "turn.memory['tags']"),
            ({"raw": b"x"}, "turn.memory['raw']"),
            ({"deep": nested(5000)}, "turn.memory"),
        ],
    )
    async def test_of_memory_the_member_is_named(self, kept: Any, named: str) -> None:
        async def run(turn: Turn) -> str:
            turn.memory.update(kept)
            return "x"

        trace, _ = await carried(run)
        assert f"TypeError: {named} cannot be stored as JSON" in trace
        assert '{}", line {}, in run'.format(*line_of(run, "update").rsplit(":", 1)) in trace


def put(turn: Turn) -> None:
    turn.memory["tags"] = {"a"}


def put_if_missing(turn: Turn) -> None:
    turn.memory.setdefault("tags", {"a"})


def put_by_name(turn: Turn) -> None:
    turn.memory.update(tags={"a"})


def put_together(turn: Turn) -> None:
    turn.memory |= {"tags": {"a"}}


class TestMemory:
    @pytest.mark.parametrize("way", [put, put_if_missing, put_by_name, put_together])
    async def test_refuses_what_cannot_be_kept_in_the_authors_line(
        self, way: Callable[[Turn], None], caplog: pytest.LogCaptureFixture
    ) -> None:
        """It is in the trace of the run, and in the host's log."""
        trace, _ = await carried(way)
        file, line = line_of(way, "turn.memory").rsplit(":", 1)
        told = "TypeError: turn.memory['tags'] cannot be stored as JSON: it is a set"
        for text in (trace, caplog.text):
            assert f'File "{file}", line {line}, in {way.__name__}' in text
            assert told in text

    async def test_of_what_was_changed_within_it_the_agent_is_named(self) -> None:
        async def run(turn: Turn) -> str:
            turn.memory.setdefault("cart", []).append({"a"})
            return "x"

        trace, _ = await carried(run)
        assert "TypeError: turn.memory['cart'][0] cannot be stored as JSON: it is a set" in trace
        assert line_of(run, "def run") in trace

    async def test_gives_back_what_it_was_given(self) -> None:
        given: dict[str, Any] = {
            "nothing": None,
            "list": [None, True, 1, -0.5, 2**64 - 1, -(2**63), "", "a\x00b", "ä😀", [], {}],
            "dict": {"": {"a": [1e308]}},
            "counts": Counter("aab"),
        }
        found: list[dict[str, Any]] = []

        def run(turn: Turn) -> Any:
            found.append(dict(turn.memory))
            turn.memory.update(given)
            return turn.ask("More?")

        with playing(run) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.send("one")
                await client.send("two", task_id=task.id)
        assert found == [{}, given]


@pytest.mark.backend("sqlite")  # what happens in processes is the same on both databases
class TestInAProcess:
    """All of it is told there as it is told here."""

    async def test_what_does_nothing_is_told(self, scripted: Tell) -> None:
        run = (await scripted("careless")).run
        lines = RunLine.objects.filter(run=run).values_list("text", flat=True)
        (told,) = await until(lambda: run_in_thread(list, lines.all()))
        assert "process_agents/agents.py:" in told
        assert told.endswith("without yield turn.ask(...) it does nothing")

    async def test_what_cannot_be_recorded_names_the_line(self, scripted: Tell) -> None:
        trace = (await scripted("numeric")).trace
        assert "It was emitted at " in trace
        assert "process_agents/agents.py:" in trace
        for word, said, told in [
            ("unpicklable", "yield (word", "generator cannot be content: give a str or a Part"),
            ("unawaited", "yield said", "coroutine cannot be content: give a str or a Part"),
            ("unreadable", "yield Two", "TwoWordsError cannot be content: give a str or a Part"),
            ("ungiven", "yield data", "Encoding objects of type generator is unsupported"),
        ]:
            script = getattr(agents, word)
            here, _ = await carried(calling(script), hosted=False)
            there = (await scripted(word)).trace
            said_at = f"It was emitted at {line_of(script, said)}"
            for trace in (here, there):
                assert f"TypeError: {told}\n{said_at}\n" in trace, word
                assert "cannot pickle" not in trace

    async def test_memory_is_refused_in_the_authors_line_and_kept_if_it_is_a_dict(
        self, scripted: Tell
    ) -> None:
        trace = (await scripted("hoarding")).trace
        file, line = line_of(agents.hoarding, "turn.memory").rsplit(":", 1)
        assert f'File "{file}", line {line}, in hoarding' in trace
        assert (
            "TypeError: turn.memory['pattern'] cannot be stored as JSON: it is a generator" in trace
        )
        kept = await scripted("counting")
        assert kept.trace == ""
        assert kept.memory == '{"counts":{"counting":1}}'
