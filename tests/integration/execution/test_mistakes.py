"""Mistakes of agents are told with the line of the author's code: in the run's trace or its log, and in the host's log."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
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

pytestmark = pytest.mark.django_db(transaction=True)


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


async def carried(run: Callable[..., Any], **about: Any) -> tuple[str, list[str]]:
    """What the trace and the log of an agent's run say."""
    with playing(run, **about) as agent:
        async with hosting():
            await Client(agent).send()
    return (await run_in_thread(Run.objects.get)).error, await run_in_thread(_logged)


async def tell_script(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Send this to `Script`, which runs in a process of its own."""
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "a2a_project.settings")
    monkeypatch.setenv("A2A_APPS", "tests.integration.execution.process_agents")
    registry.register(Script)
    try:
        agent = registry.find_hosted(Script.slug)
        assert agent is not None
        async with hosting():
            await Client(agent).send(text)
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

    async def test_is_told_of_an_agent_in_a_process(self, monkeypatch: pytest.MonkeyPatch) -> None:
        await tell_script(monkeypatch, "careless")
        (told,) = await run_in_thread(_logged)
        assert "process_agents/agents.py:" in told
        assert told.endswith("without yield turn.ask(...) it does nothing")

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
            yield data(float("nan"))

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
        ("word", "said", "told"),
        [
            (
                "unpicklable",
                "yield (word",
                "TypeError: generator cannot be content: give a str or a Part",
            ),
            (
                "unawaited",
                "yield said",
                "TypeError: coroutine cannot be content: give a str or a Part",
            ),
            (
                "unreadable",
                "yield Two",
                "TypeError: TwoWordsError cannot be content: give a str or a Part",
            ),
            (
                "ungiven",
                "yield data",
                "TypeError: Encoding objects of type generator is unsupported",
            ),
        ],
    )
    async def test_is_told_of_a_process_as_of_the_event_loop(
        self, word: str, said: str, told: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        script = getattr(agents, word)
        here, _ = await carried(lambda turn: script(turn))
        await tell_script(monkeypatch, word)
        there = (await run_in_thread(Run.objects.latest, "pk")).error
        said_at = f"It was emitted at {line_of(script, said)}"
        for trace in (here, there):
            assert f"{told}\n{said_at}\n" in trace
            assert "cannot pickle" not in trace

    async def test_names_the_line_in_another_process(self, monkeypatch: pytest.MonkeyPatch) -> None:
        await tell_script(monkeypatch, "numeric")
        run = await run_in_thread(Run.objects.get)
        assert "It was emitted at " in run.error
        assert "process_agents/agents.py:" in run.error

    @pytest.mark.parametrize(
        ("kept", "named"),
        [
            ({"cart": [1, {"when": object()}]}, "turn.memory['cart'][1]['when']"),
            ({"cart": {(1, 2): "x"}}, "turn.memory['cart'][(1, 2)]"),
            ({"half": "\ud800"}, "turn.memory['half']"),
            ({"tags": {"a", "b"}}, "turn.memory['tags']"),
            ({"raw": b"x"}, "turn.memory['raw']"),
            ({"rate": float("nan")}, "turn.memory['rate']"),
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

    async def test_refuses_it_in_a_process(self, monkeypatch: pytest.MonkeyPatch) -> None:
        await tell_script(monkeypatch, "hoarding")
        trace = (await run_in_thread(Run.objects.get)).error
        file, line = line_of(agents.hoarding, "turn.memory").rsplit(":", 1)
        assert f'File "{file}", line {line}, in hoarding' in trace
        assert (
            "TypeError: turn.memory['pattern'] cannot be stored as JSON: it is a generator" in trace
        )

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

    async def test_of_a_process_keeps_a_dict_of_any_kind(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await tell_script(monkeypatch, "counting")
        assert (await run_in_thread(Run.objects.get)).error == ""
        assert (await run_in_thread(Task.objects.get)).memory == '{"counts":{"counting":1}}'
