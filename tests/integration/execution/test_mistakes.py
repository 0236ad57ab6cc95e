"""Mistakes of agents are told with the line of the author's code: in the run's trace or its log, and in the host's log."""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from a2a_tasks.agents import Turn, data, registry
from a2a_tasks.execution import run_log
from a2a_tasks.models import Run, RunLine
from a2a_tasks.store.hop import hop
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
    return f"{__file__}:{first + number}"


async def carried(run: Callable[..., Any], **about: Any) -> tuple[str, list[str]]:
    """What the trace and the log of an agent's run say."""
    with playing(run, **about) as agent:
        async with hosting():
            await Client(agent).send()
    return (await hop(Run.objects.get)).error, await hop(_logged)


async def tell_script(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Send this to `Script`, which runs in a process of its own."""
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "a2a_project.settings")
    monkeypatch.setenv("A2A_APPS", "tests.integration.execution.process_agents")
    registry.register(Script)
    try:
        agent = registry.hosted(Script.slug)
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
        (told,) = await hop(_logged)
        assert "process_agents/agents.py:" in told
        assert told.endswith("without yield turn.ask(...) it does nothing")

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
        assert "int is not content" in trace
        assert f"It was said at {line_of(run, 'yield 42')}" in trace

    async def test_names_that_of_the_innermost_generator(self) -> None:
        def inner() -> Iterator[Any]:
            yield data(float("nan"))

        def run(turn: Turn) -> Iterator[Any]:
            yield from inner()

        assert f"It was said at {line_of(inner, 'yield')}" in (await carried(run))[0]

    async def test_names_the_function_that_returned_it(self) -> None:
        async def run(turn: Turn) -> Any:
            return {"answer": 42}

        assert f"It was said at {line_of(run, 'def run')}" in (await carried(run))[0]

    async def test_names_the_line_in_another_process(self, monkeypatch: pytest.MonkeyPatch) -> None:
        await tell_script(monkeypatch, "numeric")
        run = await hop(Run.objects.get)
        assert "It was said at " in run.error
        assert "process_agents/agents.py:" in run.error

    @pytest.mark.parametrize(
        ("kept", "named"),
        [
            ({"cart": [1, {"when": object()}]}, "turn.memory['cart'][1]['when']"),
            ({"cart": {(1, 2): "x"}}, "turn.memory['cart'][(1, 2)]"),
            ({"half": "\ud800"}, "turn.memory['half']"),
        ],
    )
    async def test_of_memory_the_member_is_named(self, kept: Any, named: str) -> None:
        async def run(turn: Turn) -> str:
            turn.memory.update(kept)
            return "x"

        trace, _ = await carried(run)
        assert f"TypeError: {named} cannot be kept as JSON" in trace
        assert line_of(run, "def run") in trace
